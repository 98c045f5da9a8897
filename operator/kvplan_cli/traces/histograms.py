"""Histograms of output lengths from CSV.

Input: ``le,count`` (cumulative, as Prometheus has it) or ``upper,count`` (per bucket). Output: ``Published``
with the resolution of the grid as error bound. Requests beyond the last finite edge have no known length,
so they are refused rather than guessed.
"""

from pathlib import Path

import numpy as np

from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.numeric_csv import numeric_columns
from kvplan_operator.model.lengths import lengths_from_histogram
from kvplan_operator.model.trace import Floats
from kvplan_operator.model.workload import Published
from kvplan_solver.errors import InvalidInput


def read_histogram(path: Path) -> Published:
    """The distribution behind a histogram file, plain or gzip.

    Raises:
        TraceError: unreadable, the columns missing, counts that fall, or requests beyond the last edge.
    """
    edges, counts = _buckets(path)
    finite = np.isfinite(edges)
    beyond = float(counts[~finite].sum())
    if beyond:
        raise TraceError(path, f"{beyond:g} requests lie beyond the last edge", "add an edge that holds them")
    try:
        lengths = lengths_from_histogram(edges[finite].tolist(), counts[finite].tolist())
    except InvalidInput as error:
        raise TraceError(path, f"{error.field} is {error.value!r}", error.remedy) from error
    maximum = int(np.ceil(edges[finite & (counts > 0)].max()))
    return Published(lengths, float(lengths.samples.mean()), maximum)


def _buckets(path: Path) -> tuple[Floats, Floats]:
    """Upper edges and requests per bucket."""
    columns = numeric_columns(path, ("le", "upper", "count").__contains__)
    if "count" not in columns or ("le" in columns) == ("upper" in columns):
        raise TraceError(path, "no histogram columns", "give le,count (cumulative) or upper,count (per bucket)")
    if "upper" in columns:
        return columns["upper"], columns["count"]
    counts = np.diff(columns["count"], prepend=0.0)
    falling = np.flatnonzero(counts < 0)
    if len(falling):
        problem = f"the count falls at bucket {falling[0] + 1}"
        raise TraceError(path, problem, "give cumulative counts for le, or name the edges upper")
    return columns["le"], counts
