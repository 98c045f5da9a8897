"""What must hold after every event of the cluster, watched while a fleet changes.

Inputs: the API server's watches, what routers say. Outputs: everything that did not hold, and the fewest GPUs that ever
served. Nothing here depends on the operator's word: GPUs are added up from pods as the API server has them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from e2e.loop import looking
from e2e.loop.world import NAMESPACE, World
from kvplan_operator.act.ledger import ledger
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import NODES, PODS

GPU = "nvidia.com/gpu"
_LOOK_SECONDS = 0.5


class Watcher:
    """What was seen.

    Attributes:
        overdrawn: nodes whose pods asked for more GPUs than it has, in words.
        over_budget: slots that routers reserved more tokens on than the index allows, in words.
        fewest_gpus: that engines which were Ready and not on their way out had together; None before the first look.
        looks: how many events and answers were judged.
    """

    def __init__(self, client: Client, world: World) -> None:
        self._world = world
        self.nodes: Reflector[Any] = Reflector(client, NODES)
        self.pods: Reflector[Any] = Reflector(client, PODS, project=project_pod, on_change=self._pods_changed)
        self.overdrawn: list[str] = []
        self.over_budget: list[str] = []
        self.fewest_gpus: int | None = None
        self.looks: Counter[str] = Counter()
        self._budgets: dict[str, int] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in (self.nodes.run, self.pods.run, self._follow_routers):
                group.create_task(part())

    def _pods_changed(self, *_change: Any) -> None:
        if not (self.pods.synced.is_set() and self.nodes.synced.is_set()):
            return
        self.looks["events"] += 1
        self.overdrawn += ledger(self.nodes.objects.values(), self.pods.objects.values(), GPU).overdrawn()
        serving = sum(_gpus(pod) for pod in self.pods.objects.values() if _serves(pod))
        self.fewest_gpus = serving if self.fewest_gpus is None else min(serving, self.fewest_gpus)

    async def _follow_routers(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._look_at_routers)
            except OSError:
                self.looks["silent routers"] += 1  # one that is going, or has not come yet
            await asyncio.sleep(_LOOK_SECONDS)

    def _look_at_routers(self) -> None:
        reserved: Counter[str] = Counter()
        index = looking.index(self._world)
        for said in looking.routers(self._world):
            reserved.update(said["reserved"])
        budgets = {slot["slot"]: int(slot["budgetTokens"]) for slot in index["slots"]}
        allowed = {slot: max(budget, self._budgets.get(slot, 0)) for slot, budget in budgets.items()}
        self.looks["answers"] += 1
        self.over_budget += [
            f"{slot}: {reserved[slot]} of {allowed[slot]}" for slot in allowed if reserved[slot] > allowed[slot]
        ]
        self._budgets = budgets


@asynccontextmanager
async def watching(client: Client, world: World) -> AsyncIterator[Watcher]:
    """A watcher at work."""
    watcher = Watcher(client, world)
    running = asyncio.create_task(watcher.run())
    try:
        await watcher.pods.synced.wait()
        await watcher.nodes.synced.wait()
        yield watcher
    finally:
        running.cancel()
        await asyncio.wait({running})


def _serves(pod: Any) -> bool:
    own = pod["metadata"].get("namespace") == NAMESPACE and "deletionTimestamp" not in pod["metadata"]
    conditions = pod.get("status", {}).get("conditions", ())
    return own and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _gpus(pod: Any) -> int:
    containers = pod.get("spec", {}).get("containers", ())
    return sum(int(c.get("resources", {}).get("requests", {}).get(GPU, 0)) for c in containers)
