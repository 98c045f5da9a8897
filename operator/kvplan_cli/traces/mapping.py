"""Which column holds what: a small spec, given by the user or detected from well-known column names.

Inputs: ``key=column`` pairs or a YAML mapping, and the columns of a file. Output: a ``ColumnMapping``.
Detection never guesses: it knows the spec's own keys and the exact names of published traces, and everything else has
to be named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvplan_cli.traces.errors import TraceError

UNIT_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
"""Seconds per arrival unit; ``iso`` (date and time) is the fourth unit."""
_COLUMN_KEYS = ("arrival", "prompt", "output", "class", "key", "blocks")
SPEC_KEYS = (*_COLUMN_KEYS, "arrivalUnit", "blockTokens")
"""Everything a spec may say."""

_ARRIVALS = {
    "arrival": "s",
    "t_s": "s",
    "t_ms": "ms",
    "t_us": "us",
    "arrived_at": "s",
    "TIMESTAMP": "iso",
    "Timestamp": "s",
}
_PROMPTS = (
    "prompt",
    "prompt_tokens",
    "in",
    "input_length",
    "ContextTokens",
    "Request tokens",
    "num_prefill_tokens",
)
_OUTPUTS = (
    "output",
    "output_tokens",
    "out",
    "output_length",
    "GeneratedTokens",
    "Response tokens",
    "num_decode_tokens",
)
_BLOCKS = {"blocks": 512, "h": 512, "hash_ids": 512}
_KEYS = ("key", "session")
_RESTARTING = "session"  # times of traces with this column restart in every session


@dataclass(frozen=True)
class ColumnMapping:
    """Where each fact of a request stands; an empty name means the file does not have it.

    Attributes:
        output: output tokens; the only one that every file must have.
        arrival: arrival time.
        arrival_unit: ``s``, ``ms``, ``us`` or ``iso``.
        prompt: prompt tokens.
        class_column: the request class.
        key: session, tenant or another key that requests with a common prefix share.
        blocks: ids of the leading prompt blocks.
        block_tokens: tokens of one block.
    """

    output: str
    arrival: str = ""
    arrival_unit: str = "s"
    prompt: str = ""
    class_column: str = ""
    key: str = ""
    blocks: str = ""
    block_tokens: int = 512

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        named = (self.arrival, self.prompt, self.output, self.class_column, self.key, self.blocks)
        return tuple(dict.fromkeys(name for name in named if name))

    def described(self) -> str:
        """The mapping as the spec that reproduces it."""
        pairs = {"arrival": self.arrival, "arrivalUnit": self.arrival_unit if self.arrival else ""}
        pairs |= {"prompt": self.prompt, "output": self.output, "class": self.class_column, "key": self.key}
        pairs |= {"blocks": self.blocks, "blockTokens": str(self.block_tokens) if self.blocks else ""}
        return ",".join(f"{key}={value}" for key, value in pairs.items() if value)


def parse_pairs(text: str) -> dict[str, str]:
    """``arrival=t_s,output=out`` as a spec; an empty column (``arrival=``) switches its detection off.

    Raises:
        TraceError: a pair without ``=``, an unknown or a repeated key.
    """
    spec: dict[str, str] = {}
    for pair in text.split(","):
        key, found, column = pair.strip().partition("=")
        if not found or key in spec:
            problem = f"{pair.strip()!r} repeats a key" if found else f"{pair.strip()!r} is not key=column"
            raise TraceError("--columns", problem, "write it like --columns arrival=t_s,output=output_tokens")
        spec[key] = column
    return checked_spec(spec, "--columns")


def read_spec(path: Path) -> dict[str, str]:
    """A spec from a YAML file of ``key: column`` lines.

    Raises:
        TraceError: unreadable, no mapping, or an unknown key.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TraceError(path, f"no readable YAML ({error})", "give a file of key: column lines") from error
    if not isinstance(document, dict):
        raise TraceError(path, "not a YAML mapping", "give a file of key: column lines")
    return checked_spec(document, path)


def checked_spec(spec: Mapping[Any, object], source: Path | str) -> dict[str, str]:
    """The spec with text keys and values, and only known ones."""
    for key, value in spec.items():
        if key not in SPEC_KEYS:
            raise TraceError(source, f"unknown key {key!r}", f"use {', '.join(SPEC_KEYS)}")
        if not isinstance(value, str | int | None) or isinstance(value, bool):
            raise TraceError(source, f"{key} is {value!r}", "name one column")
    texts = {str(key): "" if value is None else str(value) for key, value in spec.items()}
    _check_unit(texts, source)
    _block_tokens(texts, source)
    return texts


def resolve(spec: Mapping[str, str], columns: Sequence[str], source: Path) -> ColumnMapping:
    """The mapping for a file: what the spec says, the rest detected.

    Raises:
        TraceError: a named column is missing, or no output column is named or known.
    """
    for key in _COLUMN_KEYS:
        if spec.get(key) and spec[key] not in columns:
            found = f"its columns are {_listed(columns)}"
            raise TraceError(
                source,
                f"no column {spec[key]!r} for {key}",
                f"name one that exists with --columns {key}=COLUMN, {found}",
            )
    output = spec.get("output", _first(_OUTPUTS, columns))
    if not output:
        raise TraceError(
            source,
            f"no output token column among {_listed(columns)}",
            "name it with `kvplan fit --columns output=COLUMN`",
        )
    arrival = spec.get("arrival", "" if _RESTARTING in columns else _first(tuple(_ARRIVALS), columns))
    blocks = spec.get("blocks", _first(tuple(_BLOCKS), columns))
    return ColumnMapping(
        output=output,
        arrival=arrival,
        arrival_unit=spec.get("arrivalUnit") or _ARRIVALS.get(arrival, "s"),
        prompt=spec.get("prompt", _first(_PROMPTS, columns)),
        class_column=spec.get("class", ""),
        key=spec.get("key", _first(_KEYS, columns)),
        blocks=blocks,
        block_tokens=_block_tokens(spec, source) or _BLOCKS.get(blocks, 512),
    )


def _first(known: Sequence[str], columns: Sequence[str]) -> str:
    return next((name for name in known if name in columns), "")


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in columns[:12])
    return f"{shown}, …" if len(columns) > 12 else shown or "none"


def _check_unit(spec: Mapping[str, str], source: Path | str) -> None:
    unit = spec.get("arrivalUnit", "s")
    if unit not in (*UNIT_SECONDS, "iso"):
        raise TraceError(source, f"arrivalUnit is {unit!r}", "use s, ms, us or iso")


def _block_tokens(spec: Mapping[str, str], source: Path | str) -> int:
    text = spec.get("blockTokens", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text) >= 1):
        raise TraceError(source, f"blockTokens is {text!r}", "use the tokens of one block, for example 512")
    return int(text or 0)
