"""How long after its last request a key is asked for again, weighted by tokens. Pure state.

In: a key, its reusable tokens, the time. Out: a histogram of gaps; first uses stand apart. Memory is
bounded: the key that was longest not asked for is forgotten first, and counts as a first use when it comes back.
Source: 03-cacheroute §3 (the gate's reuse sample).
"""

from typing import NamedTuple

from kvplan_router.core.histogram import Histogram, HistogramValues

GAP_SECONDS = tuple(round(0.1 * 2.0**n, 1) for n in range(20))
"""Bounds of the gaps: 0.1 s to 15 hours, two per factor of four."""


class ReuseValues(NamedTuple):
    """Reuse at one moment.

    Attributes:
        gaps: tokens by gap in seconds.
        first_tokens: tokens of first uses.
    """

    gaps: HistogramValues
    first_tokens: int


class ReuseGaps:
    """Gaps between requests of one key."""

    __slots__ = ("_capacity", "_first_tokens", "_gaps", "_last")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._last: dict[int, float] = {}  # the longest unasked first
        self._gaps = Histogram(GAP_SECONDS)
        self._first_tokens = 0

    def asked(self, key: int, tokens: int, now: float) -> None:
        """Count one arrival."""
        last = self._last
        before = last.pop(key, None)
        last[key] = now
        if before is not None:
            self._gaps.observe(max(0.0, now - before), tokens)
            return
        self._first_tokens += tokens
        if len(last) > self._capacity:
            del last[next(iter(last))]

    def values(self) -> ReuseValues:
        """A copy that no later arrival changes."""
        return ReuseValues(self._gaps.values(), self._first_tokens)
