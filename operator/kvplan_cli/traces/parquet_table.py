"""Parquet (plain or gzip) as a ``Table``; needs the optional extra ``traces``."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.table import CHUNK_ROWS, Chunk, Table, require_unique
from kvplan_cli.traces.text import opened

MAX_UNPACKED_BYTES = 1 << 30
"""Largest gzip-wrapped Parquet file taken: it has to be unpacked into memory, its index stands at the end."""


def open_parquet(path: Path) -> Table:
    """The table behind a Parquet file.

    Raises:
        TraceError: pyarrow missing, or the file unreadable, too large when unpacked, or no Parquet.
    """
    parquet = _parquet(path)
    source = _source(path)
    try:
        columns = tuple(parquet.ParquetFile(source).schema_arrow.names)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise TraceError(path, f"no readable Parquet ({error})", "write the file again") from error
    require_unique(path, columns)
    return Table(path, columns, lambda wanted: _chunks(path, parquet, wanted), unit="row")


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import parquet  # noqa: PLC0415 (an optional extra, and slow to load)
    except ImportError as error:
        raise TraceError(
            path, "reading Parquet needs pyarrow", "pip install 'kvplan[traces]' or convert the file to CSV"
        ) from error
    return parquet


def _source(path: Path) -> io.BytesIO | Path:
    with opened(path) as stream:
        if isinstance(stream, io.BufferedReader):
            return path
        unpacked = stream.read(MAX_UNPACKED_BYTES + 1)
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise TraceError(path, f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB", "gunzip it first")
    return io.BytesIO(unpacked)


def _chunks(path: Path, parquet: Any, wanted: Sequence[str]) -> Iterator[Chunk]:
    first = 1
    try:
        for batch in parquet.ParquetFile(_source(path)).iter_batches(CHUNK_ROWS, columns=list(wanted)):
            columns: dict[str, Sequence[object]] = {name: _values(batch.column(name)) for name in wanted}
            yield Chunk(list(range(first, first + batch.num_rows)), columns)
            first += batch.num_rows
    except (OSError, ValueError) as error:
        raise TraceError(path, f"damaged after row {first - 1} ({error})", "write the file again") from error


def _values(column: Any) -> list[object]:
    """Python values; times lose what is finer than a microsecond, as no arrival needs it."""
    import pyarrow  # noqa: PLC0415

    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", tz=column.type.tz), safe=False)
    return list(column.to_pylist())
