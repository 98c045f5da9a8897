"""Output lengths small enough to store: compaction, and samples from quantile tables and histograms.

Inputs: samples, published quantiles or bucket counts, in tokens. Output: ascending equal-weight samples and
a bound on how far (in W1, tokens) they are from the source. No I/O, no randomness.

m equal-weight points are nearest to a sample in W1 when each is the median of its 1/m share of the mass;
those are the mid-quantiles at levels (j+½)/m.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvplan_operator.model.trace import Floats
from kvplan_solver.errors import InvalidInput
from kvplan_solver.radius import wasserstein_1

MAX_POINTS = 1000
"""Samples kept per class by default: about 5 KB in a ConfigMap."""

POINTS_LIMIT = 100_000
"""Most samples of one class: beyond, they would not fit into a ConfigMap (1 MiB)."""


@dataclass(frozen=True, eq=False)
class LengthSamples:
    """Equal-weight samples that stand for a distribution of lengths.

    Attributes:
        samples: tokens, ascending, shape (m,).
        error_tokens: bound on the W1 distance to the source; 0 when the samples are the source.
        note: what the error comes from, empty when there is none.
    """

    samples: Floats
    error_tokens: float = 0.0
    note: str = ""


def compact_lengths(samples: Floats, max_points: int = MAX_POINTS) -> LengthSamples:
    """At most ``max_points`` samples nearest in W1 to the given ones.

    Args:
        samples: tokens, shape (n,), any order.
        max_points: m ≥ 1.

    Returns:
        Integer token counts when the input has them; the error is the exact W1 distance.

    Raises:
        InvalidInput: no samples, non-finite samples, or ``max_points`` out of range.
    """
    _require_points(max_points)
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if len(ordered) <= max_points:
        wasserstein_1(ordered, ordered)  # refuses empty and non-finite samples
        return LengthSamples(ordered)
    levels = (np.arange(max_points) + 0.5) / max_points
    points = ordered[np.ceil(levels * len(ordered) - 1e-9).astype(np.int64) - 1]
    error = wasserstein_1(points, ordered)
    return LengthSamples(points, error, f"{len(ordered)} samples as {max_points} mid-quantiles")


def lengths_from_quantiles(
    levels: Sequence[float], values: Sequence[float], max_points: int = MAX_POINTS
) -> LengthSamples:
    """Samples from a quantile table, linear between its levels.

    Args:
        levels: ascending in [0, 1], the last one 1 (the maximum). Without level 0 a minimum of 0 is taken.
        values: tokens at those levels, not descending.
        max_points: m ≥ 1 samples to produce.

    Returns:
        Samples whose error bounds the W1 distance to *any* distribution with these quantiles: half the sum
        of Δlevel·Δvalue, plus the spread inside one point's share and half a token of rounding.

    Raises:
        InvalidInput: levels or values out of order or range, or the maximum missing.
    """
    _require_points(max_points)
    q, v = _checked_table(levels, values)
    samples = np.interp((np.arange(max_points) + 0.5) / max_points, q, v)
    between = float(np.diff(q) @ np.diff(v)) / 2
    within_a_point = float(v[-1] - v[0]) / (2 * max_points)
    note = f"{len(levels)} quantiles, linear between them"
    return LengthSamples(np.round(samples), between + within_a_point + 0.5, note)


def lengths_from_histogram(
    upper_edges: Sequence[float], counts: Sequence[float], max_points: int = MAX_POINTS
) -> LengthSamples:
    """Samples from bucket counts, uniform within a bucket as Prometheus does; the first bucket starts at 0.

    Args:
        upper_edges: tokens, ascending, finite, shape (b,).
        counts: requests per bucket (not cumulative), shape (b,).
        max_points: m ≥ 1 samples to produce.

    Returns:
        Samples whose error bounds the W1 distance to any distribution with these counts.

    Raises:
        InvalidInput: edges not ascending, negative counts, or no requests at all.
    """
    edges, per_bucket = np.asarray(upper_edges, np.float64), np.asarray(counts, np.float64)
    if per_bucket.shape != edges.shape or not np.isfinite(per_bucket).all() or (per_bucket < 0).any():
        raise InvalidInput("histogram", "counts", list(counts), "give one count of 0 or more per bucket")
    if per_bucket.sum() <= 0:
        raise InvalidInput("histogram", "counts", 0, "give at least one request")
    last = int(np.flatnonzero(per_bucket)[-1])
    levels = np.cumsum(per_bucket[: last + 1]) / per_bucket.sum()
    levels[-1] = 1.0
    made = lengths_from_quantiles(levels.tolist(), edges[: last + 1].tolist(), max_points)
    return LengthSamples(made.samples, made.error_tokens, f"{len(edges)} buckets, uniform within each")


def _require_points(max_points: int) -> None:
    if not 1 <= max_points <= POINTS_LIMIT:
        raise InvalidInput("output lengths", "max_points", max_points, f"use 1 to {POINTS_LIMIT}")


def _checked_table(levels: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    q, v = np.asarray(levels, np.float64), np.asarray(values, np.float64)
    if q.ndim != 1 or not q.size or q.shape != v.shape:
        raise InvalidInput("quantile table", "values", len(values), "give one value per level, at least one")
    if not (np.isfinite(q).all() and (np.diff(q) >= 0).all() and q[0] >= 0 and q[-1] <= 1):
        raise InvalidInput("quantile table", "levels", list(levels), "use ascending levels from 0 to 1")
    if not (np.isfinite(v).all() and (np.diff(v) >= 0).all() and v[0] >= 0):
        raise InvalidInput("quantile table", "values", list(values), "use tokens of 0 or more, not descending")
    if q[-1] < 1:
        raise InvalidInput("quantile table", "levels", float(q[-1]), "add the maximum (level 1)")
    if q[0] > 0:
        q, v = np.concatenate(([0.0], q)), np.concatenate(([0.0], v))
    return q, v
