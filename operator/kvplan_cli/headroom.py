"""What the headroom κ of (6e) is for: a fleet at the memory load a plan allows, behind two ledgers.

Inputs: groups, the requests one of them fits, the routers that share its budget. Output: the share of requests
refused where the ledger keeps κ free as well, and where it gives out all of M. Arrivals are Poisson, service is
exponential; a request goes to the emptiest group its router has room on, and leaves after waiting for one mean
service time. Counted, not derived, from a seed. Pure.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from random import Random

HEADROOM = 0.2
"""κ of the paper's evaluation, and the default of `objective.headroomMilli`."""
PATIENCE = 1.0
"""Longest wait, in mean service times."""
_REQUESTS = 20_000


@dataclass(frozen=True)
class Refusals:
    """Shares of requests that waited too long.

    Attributes:
        fitting: requests that the KV cache of one group fits.
        groups: of the configuration.
        routers: processes that share every group's budget.
        kept_free: with a ledger of M/(1+κ), which is the mean that (6e) allows.
        given_out: with a ledger of M.
    """

    fitting: int
    groups: int
    routers: int
    kept_free: float
    given_out: float


def refusals(fitting: int, groups: int, routers: int, seed: int = 0) -> Refusals:
    """Both ledgers at the largest mean that (6e) allows."""
    mean = fitting / (1 + HEADROOM)
    load = mean * groups
    kept = _refused(load, groups, _shares(int(mean), routers), Random(seed))  # noqa: S311 - a simulation
    given = _refused(load, groups, _shares(fitting, routers), Random(seed))  # noqa: S311
    return Refusals(fitting, groups, routers, kept, given)


def _shares(budget: int, routers: int) -> list[int]:
    """Whole requests of one group's budget per router."""
    return [(budget * (n + 1)) // routers - (budget * n) // routers for n in range(routers)]


@dataclass
class _Router:
    """One process: its part of every group's budget, what it holds, who waits since when."""

    share: int
    held: list[int]
    waiting: deque[float] = field(default_factory=deque)

    def start(self, rng: Random) -> int | None:
        """Take the emptiest group with room."""
        group = min(range(len(self.held)), key=lambda g: (self.held[g], rng.random()))
        if self.held[group] >= self.share:
            return None
        self.held[group] += 1
        return group

    def next_waiting(self, now: float) -> tuple[bool, int]:
        """(whether one still waits, how many gave up before it)."""
        gone = 0
        while self.waiting and now - self.waiting[0] > PATIENCE:
            self.waiting.popleft()
            gone += 1
        return bool(self.waiting), gone


def _refused(load: float, groups: int, shares: list[int], rng: Random) -> float:
    """Share of requests refused; a service takes 1 on average, so the load is the arrival rate."""
    routers = [_Router(share, [0] * groups) for share in shares]
    ends: list[tuple[float, int, int]] = []
    now, refused = 0.0, 0
    for _ in range(_REQUESTS):
        now += rng.expovariate(load)
        refused += _finish(ends, routers, now, rng)
        r = rng.randrange(len(routers))
        routers[r].waiting.append(now)
        refused += _admit(ends, routers, r, now, rng)
    return refused / _REQUESTS


def _finish(ends: list[tuple[float, int, int]], routers: list[_Router], now: float, rng: Random) -> int:
    """End what is over by now and let the next ones in; returns who gave up."""
    refused = 0
    while ends and ends[0][0] <= now:
        at, r, group = heapq.heappop(ends)
        routers[r].held[group] -= 1
        refused += _admit(ends, routers, r, at, rng)
    return refused


def _admit(ends: list[tuple[float, int, int]], routers: list[_Router], r: int, now: float, rng: Random) -> int:
    """Start those of one router that wait, in order, while there is room; returns who gave up."""
    router, refused = routers[r], 0
    while True:
        waits, gone = router.next_waiting(now)
        refused += gone
        group = router.start(rng) if waits else None
        if group is None:
            return refused
        router.waiting.popleft()
        heapq.heappush(ends, (now + rng.expovariate(1.0), r, group))
