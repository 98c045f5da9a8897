"""What the three formats have in common: a table read in chunks of raw values.

A ``Chunk`` holds equally long columns of raw values (text, numbers, lists or None) with the line of each
row. Rows that are no rows at all (wrong number of fields, broken JSON) are in ``broken``. The formats judge
nothing else; that is done once, in ``rows``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvplan_cli.traces.errors import TraceError

CHUNK_ROWS = 4_096
"""Rows converted at a time: enough to vectorise, few enough that the garbage collector has little to walk."""


@dataclass
class Chunk:
    """Raw rows by column.

    Attributes:
        lines: line (or row) number of each row.
        columns: raw values per column name, each as long as ``lines``.
        broken: (line, kind, detail) of rows that could not be taken apart.
    """

    lines: list[int]
    columns: dict[str, Sequence[object]]
    broken: list[tuple[int, str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """An opened trace file.

    Attributes:
        path: the file.
        columns: its column names.
        chunks: reads the named columns once, from the beginning.
        unit: what ``Chunk.lines`` counts: ``line`` or ``row``.
    """

    path: Path
    columns: tuple[str, ...]
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]
    unit: str = "line"


def require_unique(path: Path, columns: Sequence[str]) -> None:
    """Refuse a table in which a column name stands twice: nobody could say which one is meant."""
    for name in columns:
        if columns.count(name) > 1:
            raise TraceError(path, f"the column {name!r} stands twice", "rename one of them")
