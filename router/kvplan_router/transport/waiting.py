"""Requests that wait for room: who is woken, and when.

In: a :class:`Decider`. Out: the same decider, which wakes those it releases, and a future per waiting request. Must not
decide who is released: that is the core's. Source: 05-router §4.
"""

import asyncio
from collections.abc import Callable, Iterable

from kvplan_router.core.values import Decision, Pick, Released, Request, Shed, Ticket, Usage, Wait
from kvplan_router.transport.interface import Decider

_SLACK_SECONDS = 0.002
"""A loop's timer may fire a clock tick early; a look before the deadline would be the last one."""


class WaitingRoom:
    """A decider that knows whom to wake. Only for one event loop."""

    def __init__(self, decider: Decider, clock: Callable[[], float]) -> None:
        self._decider, self._clock = decider, clock
        self._waiting: dict[object, asyncio.Future[Pick | Shed]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def decide(self, request: Request) -> Decision:
        """See :class:`Decider`."""
        return self._decider.decide(request)

    def served(self, ticket: Ticket, address: str) -> None:
        """See :class:`Decider`."""
        self._decider.served(ticket, address)
        self.look()

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:
        """See :class:`Decider`; what became free goes to those that wait."""
        ended = self._decider.finish(ticket, usage, now)
        self.look()
        return ended

    def abandon(self, ticket: object, now: float) -> bool:
        """See :class:`Decider`."""
        self._waiting.pop(ticket, None)
        left = self._decider.abandon(ticket, now)
        self.look()
        return left

    def release(self, now: float) -> Iterable[Released]:
        """See :class:`Decider`."""
        return self._decider.release(now)

    def look(self) -> None:
        """Answer whoever can be answered now; cheap when nobody waits. Due whenever there may be room."""
        if not self._waiting:
            return
        for released in self._decider.release(self._clock()):
            future = self._waiting.pop(released.ticket, None)
            if future is not None and not future.done():
                future.set_result(released.decision)

    async def until_released(self, wait: Wait) -> Pick | Shed:
        """The decision on a waiting request, at its deadline at the latest."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Pick | Shed] = loop.create_future()
        self._waiting[wait.ticket] = future
        alarm = loop.call_later(max(0.0, wait.deadline - self._clock()) + _SLACK_SECONDS, self.look)
        try:
            return await future
        finally:
            alarm.cancel()
