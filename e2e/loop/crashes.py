"""Kill the operator once after each kind of step, in the moment in which the API server tells of it.

Inputs: a fleet that is followed, kinds of step. Outputs: the kinds after which it was killed. Steps that were on their
way when it died are nobody's occasion: another of that kind has to come. An operator that ends by itself, as one does
that could not renew its Lease in time, is started again, as a kubelet would.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

from e2e.loop.beside import beside
from e2e.loop.fleet import Fleet
from e2e.loop.steps import Kind

_KUBELET_SECONDS = 1.0


class Crashes:
    """The operator's crashes.

    Attributes:
        after: kinds of step after which it was killed, in order.
        own: how often it ended by itself.
    """

    def __init__(self, fleet: Fleet, kinds: Collection[Kind]) -> None:
        self._fleet, self._wanted = fleet, set(kinds)
        self.after, self.own = list[Kind](), 0

    async def run(self) -> None:
        """Kill the operator after each kind until cancelled."""
        operator = self._fleet.world.operator
        while True:
            seen = len(self._fleet.steps)
            with suppress(TimeoutError):
                async with asyncio.timeout(_KUBELET_SECONDS):
                    await self._fleet.patience.event()
            fresh = [step.kind for step in self._fleet.steps[seen:] if step.kind in self._wanted]
            if fresh:
                self._wanted.discard(fresh[0])
                self.after.append(fresh[0])
                await asyncio.to_thread(self._fleet.world.restart_operator)
            elif not operator.running:
                self.own += 1
                await asyncio.to_thread(operator.start)


@asynccontextmanager
async def crashing(fleet: Fleet, kinds: Collection[Kind]) -> AsyncIterator[Crashes]:
    """Crashes while the block runs."""
    crashes = Crashes(fleet, kinds)
    async with beside(crashes.run()):
        yield crashes
