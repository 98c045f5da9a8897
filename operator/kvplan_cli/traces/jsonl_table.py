"""JSON Lines (one object a line; plain or gzip) as a ``Table``."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.table import CHUNK_ROWS, Chunk, Table
from kvplan_cli.traces.text import text_lines

_LOOK_AHEAD = 100  # objects looked at for column names: optional fields may be absent from the first

Parsed = tuple[int, dict[str, object] | str]


def open_jsonl(path: Path) -> Table:
    """The table behind a JSON Lines file; its columns are the fields of the first objects.

    Raises:
        TraceError: unreadable, empty, or none of the first lines is an object.
    """
    head = list(islice(_parsed(path), _LOOK_AHEAD))
    if not head:
        raise TraceError(path, "the file has no lines", "give a file with at least one request")
    columns = dict.fromkeys(name for _, row in head if isinstance(row, dict) for name in row)
    if not columns:
        line, reason = head[0]
        raise TraceError(path, f"line {line}: {reason}", "give one JSON object a line")
    return Table(path, tuple(columns), lambda wanted: _chunks(path, wanted))


def _parsed(path: Path) -> Iterator[Parsed]:
    """(line number, object or what is wrong with it); blank lines are skipped."""
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            yield number, _parse(line)


def _parse(line: str) -> dict[str, object] | str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return "no JSON"
    return value if isinstance(value, dict) else "no JSON object"


def _chunks(path: Path, wanted: Sequence[str]) -> Iterator[Chunk]:
    rows = _parsed(path)
    while batch := list(islice(rows, CHUNK_ROWS)):
        objects = [(line, row) for line, row in batch if isinstance(row, dict)]
        columns: dict[str, Sequence[object]] = {name: [row.get(name) for _, row in objects] for name in wanted}
        broken = [(line, row, "") for line, row in batch if isinstance(row, str)]
        yield Chunk([line for line, _ in objects], columns, broken)
