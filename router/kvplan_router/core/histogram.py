"""A cumulative histogram with fixed bounds. Pure state."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class HistogramValues(NamedTuple):
    """A histogram at one moment.

    Attributes:
        bounds: upper bounds, ascending; the last bucket has none.
        counts: weight per bucket, one more than bounds; not cumulated.
        total: Σ value · weight.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


class Histogram:
    """Counts values at or below each bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, weight: int = 1) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += weight
        self.total += value * weight

    def values(self) -> HistogramValues:
        """A copy that no later observation changes."""
        return HistogramValues(self.bounds, tuple(self.counts), self.total)
