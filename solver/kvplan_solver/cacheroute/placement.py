"""Longest-processing-time placement of keys on destinations, with capacity weights, classes and bytes.

In: keys in decreasing order of rate, k_b, the initial load L[r]. Out: k_b distinct destinations per key and
the loads. Each replica goes where (L_r + share)/c_r is least: one heap per capacity class. Ties go to the
earlier destination. Loads are integers inside (ticks of about 2^-46 of the total), so sums are exact and
equal whatever the order of additions. Source: Graham's LPT; lines 14–20 of CacheRoute's algorithm;
03-cacheroute §1.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvplan_solver.cacheroute.inputs import Fleet, Floats, Ints

_TICK_BITS = 46
_INDEX_BITS = 16
_INDEX_MASK = (1 << _INDEX_BITS) - 1
_CHUNK = 1 << 20
"""Keys handled as Python integers at a time; bounds the memory of ten million keys."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Keys to place, in the order of placing.

    Attributes:
        rates: λ_b, requests per second.
        replicas: k_b ≥ 1, at most the destinations that serve the class.
        class_of: row of ``Fleet.shares``.
        sizes: bytes per replica, or None where bytes do not bind.
    """

    rates: Floats
    replicas: Ints
    class_of: Ints
    sizes: Floats | None = None


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the jobs went.

    Attributes:
        members: destinations of job 0, then of job 1, …; ascending within a job, -1 where not placed.
        loads: L[r] after placing, requests per second.
    """

    members: Ints
    loads: Floats

    @property
    def unplaced(self) -> Ints:
        """Positions in ``members`` that found no destination with room."""
        return np.flatnonzero(self.members < 0)


def place(jobs: Jobs, fleet: Fleet, initial_load: Floats) -> Placement:
    """Place every job; one that no destination has bytes for is left out and the next one tried.

    Args:
        jobs: in decreasing order of rate.
        fleet: the destinations; those of weight 0 take nothing.
        initial_load: L[r] before placing, requests per second, length R.
    """
    scale = _scale(float(initial_load.sum() + jobs.rates.sum()))
    pools = _Pools(fleet, np.rint(initial_load * scale).astype(np.int64))
    shares = np.rint(jobs.rates / jobs.replicas * scale).astype(np.int64)
    single = _single_tail(jobs, pools)
    head = _place_general(jobs, shares, single, pools)
    tail = pools.place_singles(shares[single:]) if single < shares.size else np.empty(0, dtype=np.int64)
    return Placement(np.concatenate((head, tail)), pools.loads() / scale)


def _scale(total: float) -> float:
    """Ticks per request per second: a power of two, so that equal loads stay equal as integers."""
    return math.ldexp(1.0, _TICK_BITS - math.frexp(total)[1])


def _single_tail(jobs: Jobs, pools: "_Pools") -> int:
    """Start of the last stretch that needs one replica from one heap: the bulk of every real table."""
    if jobs.sizes is not None or not pools.are_one:
        return int(jobs.rates.size)
    several = np.flatnonzero(jobs.replicas > 1)
    return int(several[-1]) + 1 if several.size else 0


def _place_general(jobs: Jobs, shares: Ints, end: int, pools: "_Pools") -> Ints:
    members: list[int] = []
    sizes = [0.0] * end if jobs.sizes is None else jobs.sizes[:end].tolist()
    columns = (shares[:end].tolist(), jobs.replicas[:end].tolist(), jobs.class_of[:end].tolist(), sizes)
    for share, count, class_of, size in zip(*columns, strict=True):
        members.extend(pools.take(share, count, class_of, size) or [-1] * count)
    return np.array(members, dtype=np.int64)


class _Pools:
    """Destinations of equal weight and classes share a heap of (load, destination) integers."""

    def __init__(self, fleet: Fleet, ticks: Ints) -> None:
        self._ticks = ticks
        self._room = fleet.byte_limits.tolist()
        kinds: dict[tuple[float, bytes], list[int]] = {}
        for r in np.flatnonzero(fleet.eligible.any(axis=0)).tolist():
            kinds.setdefault((float(fleet.weights[r]), fleet.eligible[:, r].tobytes()), []).append(r)
        self._heaps = [sorted(int(ticks[r]) << _INDEX_BITS | r for r in members) for members in kinds.values()]
        self._weights = [weight for weight, _ in kinds]
        self._of_class = [
            [number for number, (_, classes) in enumerate(kinds) if classes[row]] for row in range(len(fleet.shares))
        ]

    @property
    def are_one(self) -> bool:
        """Whether all destinations share one heap."""
        return len(self._heaps) == 1

    def take(self, share: int, count: int, class_of: int, size: float) -> list[int]:
        """Charge ``count`` distinct destinations that have room; with fewer, charge and return none."""
        if size > max(self._room):
            return []
        chosen: list[tuple[int, int]] = []
        full: list[tuple[int, int]] = []
        while len(chosen) < count:
            number = self._least(share, class_of)
            if number is None:
                break
            entry = heapq.heappop(self._heaps[number])
            has_room = size <= self._room[entry & _INDEX_MASK]
            (chosen if has_room else full).append((number, entry))
        return self._settle(chosen, full, share if len(chosen) == count else None, size)

    def _settle(
        self, chosen: list[tuple[int, int]], full: list[tuple[int, int]], share: int | None, size: float
    ) -> list[int]:
        """Push all popped entries back, the chosen ones charged unless ``share`` is None."""
        for number, entry in full:
            heapq.heappush(self._heaps[number], entry)
        charge = 0 if share is None else share << _INDEX_BITS
        for number, entry in chosen:
            heapq.heappush(self._heaps[number], entry + charge)
        if share is None:
            return []
        members = sorted(entry & _INDEX_MASK for _, entry in chosen)
        for r in members:
            self._room[r] -= size
        return members

    def _least(self, share: int, class_of: int) -> int | None:
        """The heap whose top has the least (L + share)/c; equal values: the earlier destination."""
        best: tuple[float, int] | None = None
        found: int | None = None
        for number in self._of_class[class_of]:
            if heap := self._heaps[number]:
                top = heap[0]
                key = (((top >> _INDEX_BITS) + share) / self._weights[number], top & _INDEX_MASK)
                if best is None or key < best:
                    best, found = key, number
        return found

    def place_singles(self, shares: Ints) -> Ints:
        """One replica each from the one heap: the fast path."""
        heap, replace = self._heaps[0], heapq.heapreplace
        found = [np.empty(0, dtype=np.int64)]
        for start in range(0, shares.size, _CHUNK):
            charges: Sequence[int] = (shares[start : start + _CHUNK] << _INDEX_BITS).tolist()
            tops = [replace(heap, heap[0] + charge) for charge in charges]
            found.append(np.array(tops, dtype=np.int64) & _INDEX_MASK)
        return np.concatenate(found)

    def loads(self) -> Ints:
        """Load of every destination, ticks."""
        ticks = self._ticks.copy()
        for heap in self._heaps:
            for entry in heap:
                ticks[entry & _INDEX_MASK] = entry >> _INDEX_BITS
        return ticks
