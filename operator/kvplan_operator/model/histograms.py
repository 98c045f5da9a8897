"""Histograms as Prometheus reports them: cumulative counts by upper edge, with everything that goes wrong in them.

Inputs: ``le`` labels and cumulative counts. Outputs: a frozen ``Histogram`` per bucket, quantiles, moments, and equally
weighted samples with a bound on their distance to the truth. Mixed bucket sets and late scrapes make cumulative counts
fall: they are raised to the highest count so far. Mass within a bucket is taken to be uniform; quantiles are therefore
good to one bucket. Pure.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kvplan_operator.model.lengths import MAX_POINTS, LengthSamples, lengths_from_histogram
from kvplan_operator.model.series import Series
from kvplan_operator.model.trace import Floats
from kvplan_solver.errors import InvalidInput


@dataclass(frozen=True)
class Histogram:
    """Counts per bucket.

    Attributes:
        edges: finite upper edges, ascending, in the unit of what was observed, length b; the first bucket begins at 0.
        counts: observations per bucket (not cumulative), length b.
        overflow: observations above the last edge.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    overflow: float = 0.0

    @property
    def total(self) -> float:
        """All observations."""
        return sum(self.counts) + self.overflow

    @property
    def highest(self) -> float:
        """Upper edge of the highest bucket that holds something; infinite with overflow, 0 when empty."""
        if self.overflow > 0:
            return math.inf
        return max((edge for edge, count in zip(self.edges, self.counts, strict=True) if count > 0), default=0.0)

    def quantile(self, level: float) -> float:
        """The value that a share ``level`` of the observations stays within; infinite in the overflow.

        Raises:
            InvalidInput: nothing was observed, or a level outside [0, 1].
        """
        if not 0 <= level <= 1 or self.total <= 0:
            raise InvalidInput("histogram", "level", level, "use a level in [0, 1] of a histogram that is not empty")
        wanted, below, low = level * self.total, 0.0, 0.0
        for edge, count in zip(self.edges, self.counts, strict=True):
            if count > 0 and below + count >= wanted:
                return low + (edge - low) * max(0.0, wanted - below) / count
            below, low = below + count, edge
        return math.inf

    def scv(self, mean: float) -> float | None:
        """Squared coefficient of variation; None when nothing was observed.

        Both moments are those of the buckets, so that the error of uniform mass mostly cancels; the exact mean says how
        far the overflow reaches, whose own spread is left out.

        Args:
            mean: sum over count, exact, in the unit of the edges.
        """
        if self.total <= 0 or not mean > 0:
            return None
        low = np.concatenate(([0.0], np.array(self.edges[:-1], dtype=np.float64)))[: len(self.edges)]
        high, counts = np.array(self.edges, dtype=np.float64), np.array(self.counts, dtype=np.float64)
        first, second = float(counts @ (low + high)) / 2, float(counts @ (low * low + low * high + high * high)) / 3
        if self.overflow > 0:
            above = max([0.0, *self.edges[-1:], (mean * self.total - first) / self.overflow])
            first, second = first + self.overflow * above, second + self.overflow * above * above
        return max(0.0, second * self.total / (first * first) - 1) if first > 0 else None

    def samples(self, ceiling: float, max_points: int = MAX_POINTS) -> LengthSamples:
        """Equally weighted samples.

        Args:
            ceiling: nothing lies above it; the overflow is spread up to it, and higher edges are brought down to it.
            max_points: samples to make at most; never more than observations, so that they show how few there were.

        Returns:
            Samples; ``error_tokens`` bounds their W1 distance to what was observed: the resolution of the edges.

        Raises:
            InvalidInput: nothing was observed.
        """
        edges = [min(edge, ceiling) for edge in (*self.edges, math.inf)]
        points = max(1, min(max_points, math.floor(self.total)))
        return lengths_from_histogram(edges, [*self.counts, self.overflow], points)

    def samples_on_edges(self, ceiling: float) -> Floats:
        """The same samples moved up to the edge of their bucket: few different values, for estimates that resample."""
        edges = np.array([min(edge, ceiling) for edge in (*self.edges, math.inf)])
        return np.asarray(edges[np.searchsorted(edges, self.samples(ceiling).samples)])


def histogram_of(buckets: Iterable[Series]) -> Histogram | None:
    """The histogram of bucket series; None where no series is a bucket with a number.

    ``le`` written in several ways (``1`` and ``1.0``) is one edge. Edges below 0, NaN and negative counts say nothing.
    """
    cumulative: dict[float, float] = {}
    for series in buckets:
        edge = _edge(series.labels.get("le", ""))
        if edge is not None and math.isfinite(series.value) and series.value >= 0:
            cumulative[edge] = cumulative.get(edge, 0.0) + series.value
    if not cumulative:
        return None
    edges = sorted(cumulative)
    rising = np.maximum.accumulate([cumulative[edge] for edge in edges])
    counts = np.diff(rising, prepend=0.0).tolist()
    bounded = [edge for edge in edges if math.isfinite(edge)]
    return Histogram(tuple(bounded), tuple(counts[: len(bounded)]), sum(counts[len(bounded) :]))


def _edge(text: str) -> float | None:
    try:
        edge = float(text)
    except ValueError:
        return None
    return edge if edge >= 0 else None
