"""Drawing by weight. Pure; the source of randomness is given."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Urn(Generic[T]):
    """Things drawn by weight; equal weights cost no search."""

    __slots__ = ("_cumulative", "_total", "members")

    def __init__(self, weighted: Iterable[tuple[T, int]]) -> None:
        pairs = [(member, weight) for member, weight in weighted if weight > 0]
        self.members = tuple(member for member, _ in pairs)
        alike = len({weight for _, weight in pairs}) <= 1
        self._cumulative = [] if alike else list(accumulate(weight for _, weight in pairs))
        self._total = self._cumulative[-1] if self._cumulative else len(pairs)

    def draw(self, rng: Random) -> T:
        """One of the members, by weight; there must be one."""
        members = self.members
        if len(members) == 1:
            return members[0]
        at = rng.random() * self._total
        return members[bisect_right(self._cumulative, at) if self._cumulative else int(at)]


def draw_within(urns: Urn[Urn[T]]) -> Callable[[Random], T]:
    """Draws an urn, and from it a member; where there is only one urn, from that one at once."""
    if len(urns.members) == 1:
        return urns.members[0].draw
    return lambda rng: urns.draw(rng).draw(rng)
