"""When a request ends that nobody watches: an estimate from the engines' own counts.

In: a :class:`Decider`, requests whose streams ended early, readings of how many requests each engine holds. Out: the
same decider, whose requests end when their engine holds fewer than we remember; the oldest first. The count is right
at every reading and at most one reading old; how far it was off is exported. Source: 05-router §3 (``early-close``).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from kvplan_router.core.values import Decision, Released, Request, Ticket, Usage
from kvplan_router.transport.interface import Decider

LONGEST_SECONDS = 3600.0
"""A request that no reading has ended by then is over: its engine may be gone."""


class EstimatedEnds:
    """A decider for transports that close their streams early.

    Attributes:
        error: by slot, what was remembered less what the engine held, at the last reading.
    """

    def __init__(self, decider: Decider, clock: Callable[[], float]) -> None:
        self._decider, self._clock = decider, clock
        self._open: dict[str, deque[tuple[float, Ticket]]] = {}
        self._lock = Lock()  # a transport may end streams on a thread of its own
        self.error: dict[str, int] = {}

    def decide(self, request: Request) -> Decision:
        """See :class:`Decider`."""
        return self._decider.decide(request)

    def served(self, ticket: Ticket, address: str) -> None:
        """See :class:`Decider`."""
        self._decider.served(ticket, address)

    def abandon(self, ticket: object, now: float) -> bool:
        """See :class:`Decider`."""
        return self._decider.abandon(ticket, now)

    def release(self, now: float) -> Iterable[Released]:
        """See :class:`Decider`."""
        return self._decider.release(now)

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:
        """The stream has ended, the request has not: remember it. With its usage it has ended."""
        if usage is not None:
            return self._decider.finish(ticket, usage, now)
        with self._lock:
            self._open.setdefault(ticket.account.slot, deque()).append((self._clock(), ticket))
        return True

    def reading(self, held: Mapping[str, int], asked: float) -> None:
        """Engines held so many requests, other routers' included, when they were asked; monotonic seconds.

        Args:
            held: by slot.
            asked: before this moment; younger requests may not be in the count.
        """
        with self._lock:
            for slot, count in held.items():
                remembered = self._open.get(slot, deque())
                settled = sum(1 for began, _ in remembered if began < asked)
                self.error[slot] = settled - count
                self._end_oldest(remembered, settled - count)
            self._end_ancient()

    def _end_oldest(self, remembered: deque[tuple[float, Ticket]], number: int) -> None:
        for _ in range(number):
            self._decider.finish(remembered.popleft()[1])

    def _end_ancient(self) -> None:
        before = self._clock() - LONGEST_SECONDS
        for remembered in self._open.values():
            while remembered and remembered[0][0] < before:
                self._decider.finish(remembered.popleft()[1])
