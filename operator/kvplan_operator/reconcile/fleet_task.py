"""One task per fleet: when to look at it.

Inputs: marks that something changed, a ``tick`` to run. Output: ticks, never two at a time. Any number of marks make
one tick (an Event is a queue of size one); after the first one a moment is waited for those that belong to it, as of
objects applied together. Between two ticks lies at least the spacing, at most the staleness. An urgent mark waits for
neither. After a failure comes a wait with full jitter that doubles its bound each time. An exception never ends the
task. Time is the event loop's and randomness is injected, so that tests run in simulated time. Must not: know what a
tick does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from kvplan_operator.logs import FleetLog
from kvplan_operator.settings import TickSettings

_MOST_DOUBLINGS = 30


@dataclass(frozen=True)
class Again:
    """What a tick says about the next one.

    Attributes:
        within_seconds: look again this soon even if nothing changes; None leaves it to the staleness.
    """

    within_seconds: float | None = None


Tick = Callable[[], Awaitable[Again]]


class FleetTask:
    """The life of one fleet in the operator."""

    def __init__(self, tick: Tick, settings: TickSettings, log: FleetLog, random: Random) -> None:
        """Nothing runs before ``run``; the fleet counts as changed, since nobody has looked yet.

        Args:
            tick: one look at the fleet.
            settings: settling, spacing, staleness and back-off, seconds.
            log: told of failures.
            random: of the jitter.
        """
        self._tick, self._settings, self._log, self._random = tick, settings, log, random
        self._dirty, self._urgent = asyncio.Event(), asyncio.Event()
        self._dirty.set()
        self._failures = 0

    def mark(self, *, urgent: bool = False) -> None:
        """Say that something about the fleet may have changed.

        Args:
            urgent: look at once; for what is rare and waited for, such as the end of a solve.
        """
        self._dirty.set()
        if urgent:
            self._urgent.set()

    async def run(self) -> None:
        """Look at the fleet again and again until cancelled."""
        wait = 0.0
        while True:
            await self._changed(wait)
            again = await self._look()
            if again is None:
                await asyncio.sleep(self._backoff())
                self.mark()
            else:
                await _set_within(self._urgent, self._settings.spacing_seconds)
                wait = self._left(again)

    async def _changed(self, seconds: float) -> None:
        """Wait for a mark, at most so long, and for its companions; marks from here on count for the next tick."""
        if await _set_within(self._dirty, seconds):
            await _set_within(self._urgent, self._settings.settling_seconds)
        self._dirty.clear()
        self._urgent.clear()

    async def _look(self) -> Again | None:
        """One tick; None when it failed."""
        try:
            again = await self._tick()
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            self._failed(error)  # something that the look waited for was cancelled, not the look
            return None
        except Exception as error:  # a fleet that cannot be handled now must not stop being handled
            self._failed(error)
            return None
        self._failures = 0
        return again

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        self._log.failed("the look at the fleet failed", error)

    def _left(self, again: Again) -> float:
        """How long to wait for a mark after the spacing."""
        longest = self._settings.staleness_seconds
        wanted = longest if again.within_seconds is None else min(longest, again.within_seconds)
        return max(0.0, wanted - self._settings.spacing_seconds)

    def _backoff(self) -> float:
        """Full jitter: anything up to a bound that doubles with each failure, but not below the spacing."""
        doublings = min(self._failures - 1, _MOST_DOUBLINGS)
        bound = min(self._settings.backoff_cap_seconds, self._settings.backoff_seconds * 2**doublings)
        return max(self._settings.spacing_seconds, self._random.uniform(0.0, bound))


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event was set before the time was up."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _is_being_cancelled() -> bool:
    """Whether somebody asked the running task itself to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
