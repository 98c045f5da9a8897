"""Instances, results and their parts as plain JSON values, both ways and canonically.

A solve runs in a child process and instances are worth keeping in bug reports, so both must survive JSON.
Numbers keep full precision; infinities and NaN are written as the strings "inf", "-inf" and "nan".
"""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Instance
from kvplan_solver.result import Result

T = TypeVar("T")


def dump_json(value: Instance | Result) -> str:
    """Canonical JSON text: sorted keys, no spaces; the same value gives the same bytes."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def load_instance(text: str) -> Instance:
    """An instance from ``dump_json``'s text. Raises InvalidInput naming the field that is wrong."""
    return _load(Instance, text)


def load_result(text: str) -> Result:
    """A result from ``dump_json``'s text. Raises InvalidInput naming the field that is wrong."""
    return _load(Result, text)


def _load(kind: type[T], text: str) -> T:
    try:
        loaded = _from_plain(kind, json.loads(text), kind.__name__)
    except InvalidInput:
        raise
    except (ValueError, OverflowError, RecursionError) as error:
        # Not JSON, nested beyond reason, digits beyond any float, or an array that is not rectangular.
        raise InvalidInput(kind.__name__, "text", text[:40], f"cannot be read: {error}") from error
    assert isinstance(loaded, kind)  # noqa: S101  what _from_plain promises, for the type checker
    return loaded


def to_plain(value: Any) -> Any:
    """Dataclasses, arrays, enums and tuples as dicts, lists and scalars."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _from_plain(kind: Any, plain: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is np.ndarray:
        dtype = typing.get_args(arguments[1])[0]
        return np.array(_numbers(plain, path), dtype=dtype)
    if origin is types.UnionType or origin is typing.Union:
        inner = next(a for a in arguments if a is not type(None))
        return None if plain is None else _from_plain(inner, plain, path)
    if origin is tuple:
        return _tuple(arguments, plain, path)
    if origin in (dict, Mapping):
        _expect(isinstance(plain, dict), path, plain, "an object")
        return {key: _from_plain(arguments[1], item, f"{path}.{key}") for key, item in plain.items()}
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, plain, path)
    return _scalar(kind, plain, path)


def _tuple(arguments: tuple[Any, ...], plain: Any, path: str) -> tuple[Any, ...]:
    _expect(isinstance(plain, list), path, plain, "a list")
    return tuple(_from_plain(arguments[0], item, f"{path}[{n}]") for n, item in enumerate(plain))


def _dataclass(kind: Any, plain: Any, path: str) -> Any:
    _expect(isinstance(plain, dict), path, plain, "an object")
    hints, fields = typing.get_type_hints(kind), {f.name: f for f in dataclasses.fields(kind)}
    for name in plain:
        _expect(name in fields, f"{path}.{name}", plain[name], "a known field")
    for name, field in fields.items():
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        _expect(name in plain or optional, f"{path}.{name}", None, "present")
    return kind(**{name: _from_plain(hints[name], item, f"{path}.{name}") for name, item in plain.items()})


def _scalar(kind: Any, plain: Any, path: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        allowed = [member.value for member in kind]
        _expect(plain in allowed, path, plain, f"one of {allowed}")
        return kind(plain)
    if kind is float:
        return _number(plain, path)
    wanted = "a whole number" if kind is int else f"a {kind.__name__}"
    _expect(isinstance(plain, kind) and (kind is bool or not isinstance(plain, bool)), path, plain, wanted)
    return plain


def _numbers(plain: Any, path: str) -> Any:
    if isinstance(plain, list):
        return [_numbers(item, path) for item in plain]
    return plain if isinstance(plain, bool) else _number(plain, path)


def _number(plain: Any, path: str) -> float:
    if plain in ("inf", "-inf", "nan"):
        return float(plain)
    _expect(isinstance(plain, int | float) and not isinstance(plain, bool), path, plain, "a number")
    return float(plain)


def _expect(condition: bool, path: str, value: Any, wanted: str) -> None:
    if not condition:
        subject, _, field = path.rpartition(".")
        shown = value if isinstance(value, str | int | float | bool | None) else type(value).__name__
        raise InvalidInput(subject or path, field, shown, f"expected {wanted}")
