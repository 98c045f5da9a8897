"""CSV (comma, semicolon or tab; one header line; plain or gzip) as a ``Table``.

Quoting is strict: a quote that is never closed is an error, not one huge field. It reads line by line.
"""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.table import CHUNK_ROWS, Chunk, Table, require_unique
from kvplan_cli.traces.text import text_lines

_DELIMITERS = (",", ";", "\t")
Row = tuple[int, list[str]]


def open_csv(path: Path) -> Table:
    """The table behind a CSV file.

    Raises:
        TraceError: unreadable, empty, no header line, or a column name twice.
    """
    header, _ = _opened(path)
    if all(_is_number(name) for name in header):
        raise TraceError(path, f"the first line {','.join(header[:6])} names no columns", "add a header line")
    require_unique(path, header)
    return Table(path, tuple(header), lambda wanted: _chunks(path, wanted))


def _opened(path: Path) -> tuple[list[str], Iterator[Row]]:
    lines = text_lines(path)
    first = next(lines, None)
    if first is None or not first.strip():
        raise TraceError(path, "no header line", "give a file with a header and at least one request")
    delimiter = max(_DELIMITERS, key=first.count)
    return _header(path, first, delimiter), _rows(path, lines, delimiter)


def _header(path: Path, line: str, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise TraceError(path, f"the header line is no CSV ({error})", "write one header line") from error


def _rows(path: Path, lines: Iterator[str], delimiter: str) -> Iterator[Row]:
    """(line number, fields) of every row after the header; blank lines are skipped."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    start = 2
    try:
        for fields in reader:
            if fields:
                yield start, fields
            start = reader.line_num + 2
    except csv.Error as error:
        problem = f"line {start} is no CSV ({error})"
        raise TraceError(path, problem, "close the quote or double it inside a field") from error


def _chunks(path: Path, wanted: Sequence[str]) -> Iterator[Chunk]:
    header, rows = _opened(path)
    places = {name: header.index(name) for name in wanted}
    while batch := list(islice(rows, CHUNK_ROWS)):
        yield _chunk(batch, len(header), places)


def _chunk(batch: list[Row], width: int, places: dict[str, int]) -> Chunk:
    whole = [row for row in batch if len(row[1]) == width]
    broken = [
        (line, "wrong number of fields", f"{len(fields)} instead of {width}")
        for line, fields in batch
        if len(fields) != width
    ]
    columns = {name: [fields[place] for _, fields in whole] for name, place in places.items()}
    return Chunk([line for line, _ in whole], dict(columns), broken)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
