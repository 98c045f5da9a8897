"""Load of a stated shape, every answer checked from the client's side.

Inputs: how requests look (``Shape`` per class), how many come per second (``Mix``, which may change at any time), the
gateways. Outputs: a ``Tally``. Arrivals are Poisson and open-loop: a slow fleet is not spared. The random numbers have
a seed, so that two runs ask for the same.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Self

from aiohttp import ClientSession, TCPConnector

from e2e.loop.asking import Asked, End, Ended, ask
from e2e.loop.patience import Patience
from e2e.loop.shapes import Shape

Mix = Mapping[str, float]
"""Requests per second by class."""
_KEPT = 20
"""Bad ends that are kept to be shown."""
_SILENCE_SECONDS = 60.0
"""Without any end, after which nothing more is expected."""


@dataclass
class Tally:
    """What came of the requests.

    Attributes:
        ends: how many ended how, by class.
        bad: the first that did not end well.
        ended: all, where they are kept.
    """

    ends: Counter[tuple[str, End]] = field(default_factory=Counter)
    bad: list[Ended] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)

    def add(self, ended: Ended) -> None:
        """Count one."""
        self.ends[ended.asked.request_class, ended.end] += 1
        self.ended.append(ended)
        if ended.end is not End.WHOLE and len(self.bad) < _KEPT:
            self.bad.append(ended)

    def count(self, end: End) -> int:
        """Requests of all classes that ended so."""
        return sum(number for (_, how), number in self.ends.items() if how is end)

    @property
    def total(self) -> int:
        """All that ended."""
        return self.ends.total()


class Load:
    """Requests that arrive until the block ends; those that are open then are waited for.

    Attributes:
        mix: requests per second by class, now.
        tally: of what ended.
        open: requests that have not ended.
    """

    def __init__(
        self, gateway: Callable[[], str], shapes: Mapping[str, Shape], mix: Mix, model: str, seed: int = 0
    ) -> None:
        self._gateway, self._shapes, self._model, self._rng = gateway, shapes, model, Random(seed)  # noqa: S311
        self.mix, self.tally, self.open = mix, Tally(), set[asyncio.Task[None]]()
        self._ends = Patience(_SILENCE_SECONDS)

    @staticmethod
    def session() -> ClientSession:
        """A client's session, without a bound on its connections."""
        return ClientSession(connector=TCPConnector(limit=0))

    async def __aenter__(self) -> Self:
        """Begin."""
        self._session = self.session()
        self._arriving = asyncio.create_task(self._arrive())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No more arrivals; wait for what is open, or drop it when the block failed."""
        self._arriving.cancel()
        if kind is not None:
            for task in self.open:
                task.cancel()
        with suppress(asyncio.CancelledError):
            await self._arriving
        if self.open:
            await asyncio.wait(self.open)
        await self._session.close()

    def begin_tally(self) -> None:
        """Count anew; what is open now is counted where it ends."""
        self.tally = Tally()

    async def reach(self, total: int) -> None:
        """Return when so many requests have ended.

        Raises:
            Stuck: none ends any more.
        """
        await self._ends.until(lambda: self.tally.total >= total, lambda: f"{self.tally.total} of {total} requests")

    async def _arrive(self) -> None:
        """Each arrival is due at a time of its own, so that a late one delays no other."""
        due = time.monotonic()
        while True:
            rate = sum(self.mix.values())
            due += self._rng.expovariate(rate) if rate > 0 else 0.1
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if rate > 0:
                self._send()

    def _send(self) -> None:
        classes, rates = zip(*self.mix.items(), strict=True)
        name = self._rng.choices(classes, rates)[0]
        task = asyncio.create_task(self._ask(self._shapes[name].draw(self._rng)))
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def _ask(self, asked: Asked) -> None:
        try:
            ended = await ask(self._session, self._gateway(), asked, self._model)
        except LookupError as error:
            ended = Ended(asked, End.FAILED, time.monotonic(), 0.0, detail=str(error))
        self.tally.add(ended)
        self._ends.step()
