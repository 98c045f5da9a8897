"""One trace file to the requests of each class in it, with a report of all that was not as it should be.

Inputs: a path, an optional column spec and a class name. Output: a ``LoadedTrace``. Reads files, writes none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvplan_cli.traces.bad_rows import BadRows
from kvplan_cli.traces.csv_table import open_csv
from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.jsonl_table import open_jsonl
from kvplan_cli.traces.mapping import ColumnMapping, resolve
from kvplan_cli.traces.parquet_table import open_parquet
from kvplan_cli.traces.rows import GoodRows, RowCollector
from kvplan_cli.traces.table import Table
from kvplan_cli.traces.text import suffix_of
from kvplan_operator.model.trace import Ints, RequestTrace

_OPENERS: dict[str, Callable[[Path], Table]] = {
    ".csv": open_csv,
    ".tsv": open_csv,
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
    ".parquet": open_parquet,
}


@dataclass(frozen=True)
class TraceReport:
    """How a file was read.

    Attributes:
        path: the file.
        mapping: where each fact was found.
        rows: rows in the file, bad ones included.
        bad: rows left out, by reason.
        unit: what bad rows are numbered by, ``line`` or ``row``.
        late_rows: requests that stood after a later one; they were sorted by arrival.
        empty_outputs: requests with 0 output tokens (failed or cancelled ones, usually); they are kept.
    """

    path: Path
    mapping: ColumnMapping
    rows: int
    bad: BadRows
    unit: str = "line"
    late_rows: int = 0
    empty_outputs: int = 0

    def remarks(self) -> tuple[str, ...]:
        """Sentences on everything that was not as it should be."""
        remarks = [self.bad.summary(self.unit)] if self.bad.count else []
        if self.late_rows:
            remarks.append(f"{self.late_rows} requests were out of order in time and were sorted")
        if self.empty_outputs:
            remarks.append(f"{self.empty_outputs} requests have 0 output tokens and are kept")
        return tuple(remarks)


@dataclass(frozen=True, eq=False)
class LoadedTrace:
    """The requests of every class in a file, by class name, and the report."""

    traces: tuple[RequestTrace, ...]
    report: TraceReport


def load_trace(path: Path, spec: Mapping[str, str], class_name: str = "") -> LoadedTrace:
    """Read one file.

    Args:
        path: ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.parquet``, each also with ``.gz``.
        spec: the column spec (see ``mapping``); what it leaves out is detected.
        class_name: the class of all requests; empty when the spec names a class column.

    Raises:
        TraceError: the file cannot be used; bad rows alone are reported, unless none is good.
    """
    table = _open_table(path)
    mapping = resolve(_with_class(spec, class_name, table), table.columns, path)
    collector = RowCollector(mapping)
    for chunk in table.chunks(mapping.columns):
        collector.add(chunk)
    bad = collector.bad.frozen()
    if not collector.rows:
        raise TraceError(path, "no rows below the header", "give a file with at least one request")
    if bad.count == collector.rows:
        raise TraceError(path, f"no good row: {bad.summary(table.unit)}", "mend the rows or the column mapping")
    good, late = _by_arrival(collector.collected())
    empty = int(np.count_nonzero(good.numbers["output"] == 0))
    report = TraceReport(path, mapping, collector.rows, bad, table.unit, late, empty)
    return LoadedTrace(_split(good, collector, class_name), report)


def _with_class(spec: Mapping[str, str], class_name: str, table: Table) -> Mapping[str, str]:
    """The spec with the class column: a column named ``class`` is one, unless all requests are of a named class."""
    found = "class" if not class_name and "class" in table.columns else ""
    column = spec.get("class", found)
    if bool(class_name) == bool(column):
        problem = "a class name and a class column" if class_name else "no class"
        raise TraceError(table.path, f"{problem} given", "use either --trace CLASS=FILE or --columns class=COLUMN")
    return {**spec, "class": column}


def _open_table(path: Path) -> Table:
    if not path.exists() or path.is_dir():
        reason = "Is a directory" if path.is_dir() else "No such file or directory"
        raise TraceError(path, f"cannot be read ({reason})", "give a readable file")
    opener = _OPENERS.get(suffix_of(path))
    if opener is None:
        known = ", ".join(_OPENERS)
        raise TraceError(path, f"unknown format {suffix_of(path)!r}", f"use {known}, each also with .gz")
    return opener(path)


def _by_arrival(rows: GoodRows) -> tuple[GoodRows, int]:
    """The rows in ascending arrival order, and how many stood after a later one."""
    arrival = rows.numbers.get("arrival")
    if arrival is None:
        return rows, 0
    late = int(np.count_nonzero(arrival < np.maximum.accumulate(arrival)))
    return (_taken(rows, np.argsort(arrival, kind="stable")), late) if late else (rows, 0)


def _taken(rows: GoodRows, places: Ints) -> GoodRows:
    return GoodRows(
        numbers={name: values[places] for name, values in rows.numbers.items()},
        classes=None if rows.classes is None else rows.classes[places],
        keys=None if rows.keys is None else rows.keys[places],
        blocks=None if rows.blocks is None else rows.blocks.take(places),
    )


def _split(rows: GoodRows, collector: RowCollector, class_name: str) -> tuple[RequestTrace, ...]:
    """One trace per class, by class name."""
    if rows.classes is None:
        return (_trace(class_name, rows, collector),)
    present = [(name, np.flatnonzero(rows.classes == code)) for name, code in collector.class_codes.codes.items()]
    return tuple(_trace(name, _taken(rows, places), collector) for name, places in sorted(present) if len(places))


def _trace(name: str, rows: GoodRows, collector: RowCollector) -> RequestTrace:
    return RequestTrace(
        name=name,
        output_tokens=rows.numbers["output"],
        arrival_seconds=rows.numbers.get("arrival"),
        prompt_tokens=rows.numbers.get("prompt"),
        keys=rows.keys,
        key_names=collector.key_codes.names,
        blocks=rows.blocks,
    )
