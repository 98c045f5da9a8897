"""Small CSV tables of numbers only: they have no spare rows, so one bad cell is an error."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from kvplan_cli.traces.csv_table import open_csv
from kvplan_cli.traces.errors import TraceError
from kvplan_operator.model.trace import Floats


def numeric_columns(path: Path, wanted: Callable[[str], bool]) -> dict[str, Floats]:
    """The wanted columns as floats, each of shape (rows,); ``+Inf`` is a number here, NaN is none.

    Raises:
        TraceError: unreadable, no rows, or a cell that is no number.
    """
    table = open_csv(path)
    names = [name for name in table.columns if wanted(name)]
    cells: dict[str, list[float]] = {name: [] for name in names}
    for chunk in table.chunks(names):
        for line, kind, detail in chunk.broken:
            raise TraceError(path, f"line {line}: {kind} ({detail})", "mend the line")
        for name in names:
            pairs = zip(chunk.lines, chunk.columns[name], strict=True)
            cells[name] += [_number(path, line, name, value) for line, value in pairs]
    if names and not cells[names[0]]:
        raise TraceError(path, "no rows below the header", "give at least one row")
    return {name: np.array(values) for name, values in cells.items()}


def _number(path: Path, line: int, column: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = np.nan
    if np.isnan(number):
        raise TraceError(path, f"line {line}: {column} is {value!r}", "write a number")
    return number
