"""Kill the operator once after each kind of step, as its own log tells of them.

Inputs: a world. Outputs: the kinds after which it was killed. A kind is the first word of what a rollout's step did
(`drain`, `scale`, `create`, …) or waits for.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from e2e.loop.world import World

_LOOK_SECONDS = 0.05


class Crashes:
    """The operator's crashes.

    Attributes:
        after: kinds of step after which it was killed, in order.
    """

    def __init__(self, world: World) -> None:
        self._world, self.after = world, list[str]()
        self._read = world.operator.log.stat().st_size

    async def run(self) -> None:
        """Kill the operator after each new kind until cancelled."""
        while True:
            fresh = [kind for kind in self._kinds() if kind not in self.after]
            if fresh:
                self.after.append(fresh[0])
                await asyncio.to_thread(self._world.restart_operator)
            await asyncio.sleep(_LOOK_SECONDS)

    def _kinds(self) -> Iterator[str]:
        """Kinds of the steps that were logged since the last look."""
        with self._world.operator.log.open("rb") as log:
            log.seek(self._read)
            lines = [line for line in log if line.endswith(b"\n")]
        self._read += sum(map(len, lines))
        for line in lines:
            entry = json.loads(line) if line.startswith(b"{") else {}
            if entry.get("decision") == "rollout" and entry.get("steps"):
                yield from (part.split()[0] for part in entry["outcome"].split("; "))


@asynccontextmanager
async def crashing(world: World) -> AsyncIterator[Crashes]:
    """Crashes while the block runs."""
    crashes = Crashes(world)
    running = asyncio.create_task(crashes.run())
    try:
        yield crashes
    finally:
        running.cancel()
        await asyncio.wait({running})
        if not world.operator.running:
            world.operator.start()
