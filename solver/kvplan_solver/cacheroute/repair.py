"""Bring a kept placement under a bound on the largest load with as few moves as possible.

In: a :class:`Layout` (who is where, loads, bound U). Out: the same layout with some pairs moved. Steps, in
the order of 03-cacheroute §2: one move that settles a destination; one swap that does; else the largest job
that fits elsewhere; a floor for new destinations. All loads are compared as L_r/c_r. Deterministic.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kvplan_solver.cacheroute.admission import greedy_fit
from kvplan_solver.cacheroute.inputs import Fleet, Floats, Ints
from kvplan_solver.cacheroute.placement import Jobs

NEW_DESTINATION_FLOOR = 0.9
"""A new destination is given work until it has this part of the mean load."""


@dataclass(eq=False)
class Layout:
    """A placement under repair; pair p is one replica of key ``key_of[p]``.

    Attributes:
        shares: load of each pair, requests per second.
        sizes: bytes of each pair's prefix; 0 where bytes do not bind.
        room: bytes left on each destination.
        key_of: key (row of the jobs) of each pair.
        members: destination of each pair; -1 while it has none.
        offsets: pairs of key b are offsets[b] … offsets[b+1].
        eligible: destinations each key's class may use, by class.
        class_of: class of each key.
        backups: preferred next home of each key, or -1.
        weights: c_r; 0 takes nothing.
        loads: L[r], requests per second.
    """

    shares: list[float]
    sizes: list[float]
    room: list[float]
    key_of: list[int]
    members: list[int]
    offsets: list[int]
    eligible: list[list[int]]
    class_of: list[int]
    backups: list[int]
    weights: list[float]
    loads: list[float]
    _held: dict[int, list[int]] = field(default_factory=dict)

    def relative(self, r: int, extra: float = 0.0) -> float:
        """(L_r + extra)/c_r; infinite where a destination takes nothing."""
        return (self.loads[r] + extra) / self.weights[r] if self.weights[r] > 0 else float("inf")

    def held(self, r: int) -> list[int]:
        """Pairs on a destination, ascending by (share, pair)."""
        if r not in self._held:
            here = np.flatnonzero(np.asarray(self.members) == r).tolist()
            self._held[r] = sorted(here, key=self._rank)
        return self._held[r]

    def _rank(self, pair: int) -> tuple[float, int]:
        return self.shares[pair], pair

    def lift(self, pair: int) -> None:
        """Take a pair off its destination, if it has one."""
        origin = self.members[pair]
        if origin >= 0:
            self.held(origin).remove(pair)
            self.loads[origin] -= self.shares[pair]
            self.room[origin] += self.sizes[pair]
            self.members[pair] = -1

    def move(self, pair: int, to: int) -> None:
        """Put a pair on another destination."""
        self.lift(pair)
        if to in self._held:
            insort(self._held[to], pair, key=self._rank)
        self.members[pair] = to
        self.loads[to] += self.shares[pair]
        self.room[to] -= self.sizes[pair]

    def allowed(self, pair: int) -> list[int]:
        """Destinations of the pair's class that do not hold its key already."""
        key = self.key_of[pair]
        taken = self.members[self.offsets[key] : self.offsets[key + 1]]
        return [r for r in self.eligible[self.class_of[key]] if r not in taken]

    def choices(self, pair: int) -> list[int]:
        """Allowed destinations that have room for the pair."""
        size = self.sizes[pair]
        return [r for r in self.allowed(pair) if size <= self.room[r]]

    def exchange_fits(self, pair: int, other: int) -> bool:
        """Whether two pairs may trade places, bytes and classes considered."""
        grows = self.sizes[pair] - self.sizes[other]
        origin, target = self.members[pair], self.members[other]
        room = grows <= self.room[target] and -grows <= self.room[origin]
        return room and origin in self.allowed(other)

    def best_choice(self, pair: int, bound: float) -> int | None:
        """The planned backup if it stays within the bound, else the least-loaded choice, if there is one."""
        share, choices = self.shares[pair], self.choices(pair)
        backup = self.backups[self.key_of[pair]]
        if backup in choices and self.relative(backup, share) <= bound:
            return backup
        return min(choices, key=lambda r: (self.relative(r, share), r), default=None)

    def fitting_choice(self, pair: int, bound: float) -> int | None:
        """Like :meth:`best_choice`, but None where even that exceeds the bound."""
        best = self.best_choice(pair, bound)
        return best if best is not None and self.relative(best, self.shares[pair]) <= bound else None

    def place_missing(self, bound: float) -> None:
        """Give every pair without a destination one, hottest first."""
        missing = np.flatnonzero(np.asarray(self.members) < 0).tolist()
        for pair in sorted(missing, key=lambda p: (-self.shares[p], p)):
            to = self.best_choice(pair, bound)
            if to is not None:
                self.move(pair, to)

    def hottest(self) -> int:
        """The destination with the largest relative load."""
        usable = [r for r in range(len(self.weights)) if self.weights[r] > 0]
        return max(usable, key=lambda r: (self.relative(r), -r))

    def largest(self) -> float:
        """Largest L_r/c_r."""
        return self.relative(self.hottest())


def layout_of(jobs: Jobs, members: Ints, backups: Ints, fleet: Fleet, initial_load: Floats) -> Layout:
    """Lay out kept places (-1 where a pair has none); what a destination has no bytes for loses its place."""
    sizes = np.zeros(members.size) if jobs.sizes is None else np.repeat(jobs.sizes, jobs.replicas)
    members, room = _within_bytes(members, sizes, fleet.byte_limits)
    shares = np.repeat(jobs.rates / jobs.replicas, jobs.replicas)
    placed = members >= 0
    charged = np.bincount(members[placed], weights=shares[placed], minlength=initial_load.size)
    return Layout(
        shares=shares.tolist(),
        sizes=sizes.tolist(),
        room=room.tolist(),
        key_of=np.repeat(np.arange(jobs.rates.size), jobs.replicas).tolist(),
        members=members.tolist(),
        offsets=np.concatenate(([0], np.cumsum(jobs.replicas))).tolist(),
        eligible=[np.flatnonzero(row).tolist() for row in fleet.eligible],
        class_of=jobs.class_of.tolist(),
        backups=backups.tolist(),
        weights=fleet.weights.tolist(),
        loads=(initial_load + charged).tolist(),
    )


def _within_bytes(members: Ints, sizes: Floats, limits: Floats) -> tuple[Ints, Floats]:
    """Keep the hottest pairs that fit each destination; return the places and the bytes left."""
    kept, room = members.copy(), limits.copy()
    if not sizes.any():
        return kept, room
    for r, limit in enumerate(limits.tolist()):
        here = np.flatnonzero(members == r)
        fits = greedy_fit(sizes[here], limit)
        kept[here[~fits]] = -1
        room[r] -= sizes[here[fits]].sum()
    return kept, room


def relieve_all(layout: Layout, bound: float) -> bool:
    """Move and swap until no destination exceeds the bound; False as soon as one cannot be helped."""
    while layout.relative(hot := layout.hottest()) > bound:
        excess = layout.loads[hot] - bound * layout.weights[hot]
        settled = _settle_by_move(layout, hot, excess, bound) or _settle_by_swap(layout, hot, excess, bound)
        if not settled and not _move_largest(layout, hot, bound):
            return False
    return True


def _settle_by_move(layout: Layout, hot: int, excess: float, bound: float) -> bool:
    """Move the smallest single job that is large enough."""
    return _move_first(layout, _at_least(layout, hot, excess), bound)


def _at_least(layout: Layout, r: int, share: float) -> list[int]:
    """Pairs on a destination with at least this share, smallest first."""
    held = layout.held(r)
    return held[bisect_left(held, share, key=lambda p: layout.shares[p]) :]


def _move_largest(layout: Layout, hot: int, bound: float) -> bool:
    """Move the largest job that fits somewhere."""
    return _move_first(layout, layout.held(hot)[::-1], bound)


def _move_first(layout: Layout, pairs: Iterable[int], bound: float) -> bool:
    for pair in pairs:
        to = layout.fitting_choice(pair, bound)
        if to is not None:
            layout.move(pair, to)
            return True
    return False


def _settle_by_swap(layout: Layout, hot: int, excess: float, bound: float) -> bool:
    """Exchange a job for a smaller one elsewhere so that both ends stay within the bound."""
    for pair in _at_least(layout, hot, excess):
        for r in sorted(layout.allowed(pair), key=lambda r: (layout.relative(r), r)):
            other = _partner(layout, pair, r, excess, bound)
            if other is not None:
                layout.move(pair, r)
                layout.move(other, hot)
                return True
    return False


def _partner(layout: Layout, pair: int, r: int, excess: float, bound: float) -> int | None:
    """The smallest job on ``r`` whose exchange for ``pair`` settles both ends."""
    share = layout.shares[pair]
    least = layout.loads[r] + share - bound * layout.weights[r]
    for other in _at_least(layout, r, least):
        if layout.shares[other] > share - excess:
            return None
        if layout.exchange_fits(pair, other):
            return other
    return None


def raise_new(layout: Layout, new: Sequence[int], bound: float) -> None:
    """Give each new destination work, largest fitting jobs of the hottest first, up to the floor."""
    mean = sum(layout.loads) / sum(layout.weights)
    for r in new:
        while layout.relative(r) < NEW_DESTINATION_FLOOR * mean:
            if not _pull(layout, r, min(mean, bound)):
                break


def _pull(layout: Layout, to: int, bound: float) -> bool:
    """Move the largest job that keeps ``to`` within the bound, from the hottest destination that has one."""
    room = bound * layout.weights[to] - layout.loads[to]
    sources = [r for r in range(len(layout.weights)) if r != to and layout.relative(r) > layout.relative(to)]
    for source in sorted(sources, key=lambda r: (-layout.relative(r), r)):
        held = layout.held(source)
        end = bisect_left(held, room, key=lambda p: layout.shares[p])
        for pair in reversed(held[:end]):
            if to in layout.choices(pair):
                layout.move(pair, to)
                return True
    return False
