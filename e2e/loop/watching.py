"""What must hold after every event of the cluster, watched while a fleet changes.

Inputs: the API server's watches, what routers say. Outputs: everything that did not hold, and the fewest GPUs that ever
served. Nothing here depends on the operator's word: GPUs are added up from pods as the API server has them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from e2e.loop.beside import beside
from e2e.loop.reservations import Reservations
from e2e.loop.world import NAMESPACE
from kvplan_operator.act.ledger import ledger
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import NODES, PODS
from kvplan_operator.model.pods import is_ready, is_terminating, requested_gpus

GPU = "nvidia.com/gpu"


class Watcher:
    """What was seen.

    Attributes:
        overdrawn: nodes whose pods asked for more GPUs than it has, in words.
        fewest_gpus: that engines which were Ready and not on their way out had together; None before the first look.
        events: how many changes of pods were judged.
        reservations: what routers reserve.
    """

    def __init__(self, client: Client) -> None:
        self._nodes: Reflector[Any] = Reflector(client, NODES)
        self._pods: Reflector[Any] = Reflector(client, PODS, project=project_pod, on_change=self._pods_changed)
        self.overdrawn: list[str] = []
        self.fewest_gpus: int | None = None
        self.events = 0
        self.reservations = Reservations(client)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in (self._nodes, self._pods, self.reservations):
                group.create_task(part.run())

    async def synced(self) -> None:
        """Return when everything is known."""
        await self._nodes.synced.wait()
        await self._pods.synced.wait()
        await self.reservations.synced()

    def _pods_changed(self, *_change: Any) -> None:
        if not (self._pods.synced.is_set() and self._nodes.synced.is_set()):
            return
        pods = self._pods.objects.values()
        self.events += 1
        self.overdrawn += ledger(self._nodes.objects.values(), pods, GPU).overdrawn()
        serving = sum(requested_gpus(pod, GPU) for pod in pods if _serves(pod))
        self.fewest_gpus = serving if self.fewest_gpus is None else min(serving, self.fewest_gpus)


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watcher]:
    """A watcher at work."""
    watcher = Watcher(client)
    async with beside(watcher.run()):
        await watcher.synced()
        yield watcher


def _serves(pod: Any) -> bool:
    own = pod["metadata"].get("namespace") == NAMESPACE
    return own and is_ready(pod) and not is_terminating(pod)
