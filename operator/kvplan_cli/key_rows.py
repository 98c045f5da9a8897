"""Key rates from a CSV file, as ``kvplan fit`` writes them and Prometheus exports them.

Inputs: a file with the columns of ``KEY_COLUMNS`` (error and reusable tokens may be absent or empty) and how
keys become hashes. Output: columns by class. A rate that is NaN, infinite or negative stays in: the key planner
drops, counts and reports it (03-cacheroute §1). A row that cannot be read is counted and named by line.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvplan_cli.errors import CommandError, reason_of
from kvplan_operator.model.fit_manifests import KEY_COLUMNS
from kvplan_solver.cacheroute.keys import from_hex, key_hash
from kvplan_solver.errors import InvalidInput

_REQUIRED = KEY_COLUMNS[:3]
_SHOWN_LINES = 3


@dataclass(frozen=True)
class KeyRows:
    """Keys column by column, in file order; absent numbers are None.

    Attributes:
        class_names: class of each key.
        hashes: 64-bit hash of each key.
        rates: requests per second.
        errors: upper bound of the error of each rate, requests per second.
        reusable_tokens: reusable prefix, tokens.
        bad_lines: lines that could not be read.
    """

    class_names: tuple[str, ...]
    hashes: tuple[int, ...]
    rates: tuple[float, ...]
    errors: tuple[float | None, ...]
    reusable_tokens: tuple[float | None, ...]
    bad_lines: tuple[int, ...]

    def remarks(self) -> list[str]:
        """Sentences on rows left out."""
        if not self.bad_lines:
            return []
        shown = ", ".join(map(str, self.bad_lines[:_SHOWN_LINES]))
        more = ", …" if len(self.bad_lines) > _SHOWN_LINES else ""
        return [f"{len(self.bad_lines)} rows could not be read (line {shown}{more}) and were left out"]


def hashed_by(secret: bytes, rule: str) -> Callable[[str, str], int]:
    """Plain keys: hashed as the routers do, under the fleet's secret and the rule that finds the key."""
    return lambda class_name, key: key_hash(secret, class_name, rule, key)


def already_hashed(_class_name: str, key: str) -> int:
    """Keys as the routers export them: 16 hex digits."""
    return from_hex(key)


def read_key_rows(path: Path, to_hash: Callable[[str, str], int]) -> KeyRows:
    """Every row of a key-rates file.

    Raises:
        CommandError: no file, no such columns, no good row, or a key that occurs twice.
    """
    rows, bad = [], []
    for line, row in _rows(path):
        try:
            rows.append((line, _parsed(row, to_hash)))
        except (ValueError, InvalidInput):
            bad.append(line)
    if not rows:
        problem = f"none of its {len(bad)} rows can be read" if bad else "it has no row below the header"
        raise CommandError(path, problem, f"write {','.join(KEY_COLUMNS)} with a number for each rate")
    _check_repeated(path, rows)
    columns = zip(*(row for _, row in rows), strict=True)
    return KeyRows(*(tuple(column) for column in columns), bad_lines=tuple(bad))  # type: ignore[arg-type]


Row = tuple[str, int, float, float | None, float | None]


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    reader = csv.DictReader(io.StringIO(_text(path)))
    missing = [name for name in _REQUIRED if name not in (reader.fieldnames or ())]
    if missing:
        raise CommandError(path, f"no column {', '.join(missing)}", f"the first line names {','.join(KEY_COLUMNS)}")
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise CommandError(path, f"line {reader.line_num}: {error}", "give a CSV file") from error


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CommandError(path, f"it cannot be read ({reason_of(error)})", "check the path") from error
    except UnicodeDecodeError as error:
        raise CommandError(path, f"byte {error.start} is not UTF-8 text", "give a CSV file") from error


def _parsed(row: Mapping[str, str], to_hash: Callable[[str, str], int]) -> Row:
    name, key, rate = (row[column] for column in _REQUIRED)
    if not name or not key:
        raise ValueError("class or key is empty")
    error, tokens = (_optional(row.get(column)) for column in KEY_COLUMNS[3:])
    return name, to_hash(name, key), float(rate), error, tokens


def _optional(text: str | None) -> float | None:
    return float(text) if text else None


def _check_repeated(path: Path, rows: Sequence[tuple[int, Row]]) -> None:
    seen: dict[int, int] = {}
    for line, row in rows:
        first = seen.setdefault(row[1], line)
        if first != line:
            raise CommandError(path, f"line {line} repeats the key of line {first}", "give each key one row")
