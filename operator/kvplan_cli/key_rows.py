"""Key rates from a CSV file, as ``kvplan fit`` writes them.

Inputs: a file with the columns of ``KEY_COLUMNS`` (error and reusable tokens may be absent or empty). Output:
``KeyRow`` values in file order. A rate that is NaN, infinite or negative stays in: the key planner drops, counts
and reports it (03-cacheroute §1). A row that cannot be read is left out, counted and named by line.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvplan_cli.errors import CommandError, reason_of
from kvplan_operator.model.fit_manifests import KEY_COLUMNS
from kvplan_operator.plan.raw_keys import KeyRow

_REQUIRED = KEY_COLUMNS[:3]
_SHOWN_LINES = 3


@dataclass(frozen=True)
class KeyFile:
    """What a file holds.

    Attributes:
        rows: keys in file order.
        bad_lines: lines that could not be read.
    """

    rows: tuple[KeyRow, ...]
    bad_lines: tuple[int, ...] = ()

    def remarks(self) -> list[str]:
        """Sentences on rows left out."""
        if not self.bad_lines:
            return []
        shown = ", ".join(map(str, self.bad_lines[:_SHOWN_LINES]))
        more = ", …" if len(self.bad_lines) > _SHOWN_LINES else ""
        return [f"{len(self.bad_lines)} rows could not be read (line {shown}{more}) and were left out"]


def read_key_file(path: Path) -> KeyFile:
    """Every row of a key-rates file.

    Raises:
        CommandError: no file, no such columns, no good row, or a key that occurs twice.
    """
    rows: list[KeyRow] = []
    lines: list[int] = []
    bad: list[int] = []
    for line, cells in _cells(path):
        try:
            rows.append(_parsed(cells))
            lines.append(line)
        except ValueError:
            bad.append(line)
    if not rows:
        problem = f"none of its {len(bad)} rows can be read" if bad else "it has no row below the header"
        raise CommandError(path, problem, f"write {','.join(KEY_COLUMNS)} with a number for each rate")
    _check_repeated(path, rows, lines)
    return KeyFile(tuple(rows), tuple(bad))


def _cells(path: Path) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    reader = csv.DictReader(io.StringIO(_text(path)))
    missing = [name for name in _REQUIRED if name not in (reader.fieldnames or ())]
    if missing:
        raise CommandError(path, f"no column {', '.join(missing)}", f"the first line names {','.join(KEY_COLUMNS)}")
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise CommandError(path, f"line {reader.line_num}: {error}", "give a CSV file") from error


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CommandError(path, f"it cannot be read ({reason_of(error)})", "check the path") from error
    except UnicodeDecodeError as error:
        raise CommandError(path, f"byte {error.start} is not UTF-8 text", "give a CSV file") from error


def _parsed(cells: Mapping[str, str | None]) -> KeyRow:
    """One row; ValueError where a cell is missing or is no number."""
    name, key, rate = (cells.get(column) or "" for column in _REQUIRED)
    if not name or not key:
        raise ValueError("class or key is empty")
    error, tokens = (_optional(cells.get(column)) for column in KEY_COLUMNS[3:])
    return KeyRow(name, key, float(rate), error or 0.0, tokens)


def _optional(text: str | None) -> float | None:
    """A number of 0 or more, or None where the cell is empty."""
    if not text:
        return None
    number = float(text)
    if not math.isfinite(number) or number < 0:
        raise ValueError("use a finite number of 0 or more")
    return number


def _check_repeated(path: Path, rows: Sequence[KeyRow], lines: Sequence[int]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for row, line in zip(rows, lines, strict=True):
        first = seen.setdefault((row.class_name, row.key), line)
        if first != line:
            raise CommandError(path, f"line {line} repeats the key of line {first}", "give each key one row")
