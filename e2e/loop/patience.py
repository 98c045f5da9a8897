"""Waiting without a clock of its own: for an event, and for as long as something moves.

Inputs: ``stir`` after every event, ``step`` after those that count as progress. Outputs: ``until`` returns when a check
holds, and fails when no step was made for too long, with the words of what was waited for.
"""

import asyncio
import time
from collections.abc import Callable


class Stuck(AssertionError):
    """Nothing moved for too long."""


class Patience:
    """The patience of those who wait for one thing.

    Attributes:
        seconds: that may pass without a step.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._event, self._stepped = asyncio.Event(), time.monotonic()

    def stir(self) -> None:
        """Something happened: whoever waits looks again."""
        self._event.set()
        self._event = asyncio.Event()

    def step(self) -> None:
        """Something moved on: whoever waits has all the time again."""
        self._stepped = time.monotonic()
        self.stir()

    async def event(self) -> None:
        """Return after the next event."""
        await self._event.wait()

    async def until(self, holds: Callable[[], object], waiting_for: Callable[[], str]) -> None:
        """Return when something holds.

        Args:
            holds: looked at now and after every event.
            waiting_for: in words; asked only when the patience is at its end.

        Raises:
            Stuck: nothing moved for too long.
        """
        began = time.monotonic()
        while not holds():
            left = max(began, self._stepped) + self.seconds - time.monotonic()
            try:
                async with asyncio.timeout(left):
                    await self.event()
            except TimeoutError:
                raise Stuck(f"no step within {self.seconds:.0f} s, waiting for {waiting_for()}") from None
