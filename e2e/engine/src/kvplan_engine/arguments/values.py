"""Values of flags, read as vLLM reads them. Pure; a bad value raises ArgumentTypeError, which exits with 2."""

import json
import re
from argparse import ArgumentTypeError
from itertools import pairwise
from typing import Any

AUTO_LENGTH = -1
"""``--max-model-len`` that asks for the longest that fits."""
_UNITS = {
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
}  # fmt: skip
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])", re.ASCII)


def whole_number(text: str) -> int:
    """A plain decimal integer."""
    if not re.fullmatch(r"-?\d+", text.strip(), re.ASCII) or len(text) > 18:
        raise ArgumentTypeError(f"invalid int value: {text!r}")
    return int(text)


def scaled_number(text: str) -> int:
    """An integer with an optional unit: 64m is 64 million, 64M is 64 Mi, 64Mi is nothing at all."""
    match = _WITH_UNIT.fullmatch(text.strip())
    if match is None:
        return whole_number(text)
    number, unit = match.groups()
    if "." not in number:
        return int(number) * _UNITS[unit]
    if unit.isupper():
        raise ArgumentTypeError(f"decimals are not allowed with binary units such as {unit}: {text!r}")
    return int(float(number) * _UNITS[unit])


def length_or_auto(text: str) -> int:
    """``--max-model-len``: tokens, or AUTO_LENGTH for "-1" and "auto"."""
    if text.strip().lower() in {str(AUTO_LENGTH), "auto"}:
        return AUTO_LENGTH
    return positive(scaled_number(text))


def positive(value: int) -> int:
    """``value``, if it is at least 1."""
    if value < 1:
        raise ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def count(text: str) -> int:
    """A whole number of at least 1."""
    return positive(whole_number(text))


def scaled_count(text: str) -> int:
    """A number with optional unit, at least 1."""
    return positive(scaled_number(text))


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = amount(text)
    if value > 1:
        raise ArgumentTypeError(f"must be between 0 and 1, not {text!r}")
    return value


def amount(text: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"invalid float value: {text!r}") from None
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"must be at least 0 and finite, not {text!r}")
    return value


def rate(text: str) -> float:
    """A finite number above 0."""
    value = amount(text)
    if value == 0:
        raise ArgumentTypeError("must be above 0")
    return value


def json_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentTypeError(f"Value {text!r} cannot be converted to JSON") from None
    if not isinstance(value, dict):
        raise ArgumentTypeError(f"expected a JSON object, not {text!r}")
    return value


def bucket_edges(text: str) -> dict[str, tuple[float, ...]]:
    """``--custom-histogram-buckets``: rising edges by family."""
    return {family: _edges(family, edges) for family, edges in json_object(text).items()}


def _edges(family: str, edges: Any) -> tuple[float, ...]:
    if not isinstance(edges, list) or not edges or not all(_is_number(edge) for edge in edges):
        raise ArgumentTypeError(f"{family}: expected a list of numbers, not {edges!r}")
    if any(upper <= lower for lower, upper in pairwise(edges)):
        raise ArgumentTypeError(f"{family}: edges must rise: {edges!r}")
    return tuple(edges)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def model_shape(text: str) -> tuple[int, int, int, int]:
    """``LAYERS,KV_HEADS,HEAD_DIM,VALUE_BYTES``."""
    parts = [count(part) for part in text.split(",")]
    if len(parts) != 4:
        raise ArgumentTypeError(f"expected LAYERS,KV_HEADS,HEAD_DIM,VALUE_BYTES, not {text!r}")
    return parts[0], parts[1], parts[2], parts[3]
