"""A rollout there and back on the real API server, controllers and scheduler, every GPU in use.

The nodes are simulated. Routers are played: they have the published table at once and no requests. The table itself is
kept here, as the operator's route part is not under test.
"""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kvplan_operator.act.executor import Executor, Overtaken
from kvplan_operator.act.ledger import Ledger, ledger
from kvplan_operator.act.rollout import RolloutStep, plan_rollout
from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import DEPLOYMENTS, NODES, PODS
from kvplan_operator.model.pods import node_of
from kvplan_operator.model.snapshot import ClusterView, Fact, Measured, Quality, RouterState
from tests.rollouts import in_force, pod_template, rollout_fleet, rollout_plan, snapshot_of

pytestmark = pytest.mark.e2e

GPU = "nvidia.com/gpu"
RULES = RolloutRules(min_available_milli=500, drain_timeout_seconds=60, deadline_seconds=600)
ONE, TWO, THREE = (f"gpu-node-{number}" for number in (1, 2, 3))
FOURS = rollout_plan({"tp4": [ONE, ONE, TWO, TWO, THREE, THREE]}, flags={"tp4": {"max-num-seqs": "16"}})
MIXED = rollout_plan(
    {"tp8": [ONE], "tp4": [TWO, TWO], "tp2": [THREE] * 4}, flags={"tp4": {"max-num-seqs": "16"}, "tp2": {}}
)


class Operator:
    """The rollout part of an operator, with a table of its own."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.fleet = _in(rollout_fleet(2, 4, 8, rollout={"drainTimeoutSeconds": 1}), namespace)
        self.client, self.namespace, self.changed = client, namespace, asyncio.Event()
        self.before: RoutingPlan | None = None
        self.index: dict[str, Any] = {"epoch": 1, "generation": 1, "mode": "plan", "slots": []}
        self.overdrawn: list[str] = []
        self.fewest_gpus = 0
        self.nodes = Reflector(client, NODES, on_change=self._wake)
        self.pods = Reflector(client, PODS, project=project_pod, on_change=self._pods_changed)
        self.deployments = Reflector(client, DEPLOYMENTS, namespace=namespace, on_change=self._wake)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Follow the cluster."""
        watches = (self.nodes, self.pods, self.deployments)
        tasks = [asyncio.create_task(watch.run()) for watch in watches]
        try:
            for watch in watches:
                await watch.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def roll_out(self, plan: RoutingPlan) -> list[str]:
        """Put a plan in force and return what was done."""
        done: list[str] = []
        executor = Executor(self.client, self.namespace, self._ledger)
        self.fewest_gpus = self._serving_gpus()
        while not (step := self._look(plan)).complete:
            assert step.refusal is None
            self.changed.clear()
            with contextlib.suppress(Overtaken):
                done += await executor.run(step.commands)
            await self.changed.wait()
        self.before = plan
        return done

    async def specs(self) -> dict[str, Any]:
        """The specs of all Deployments by name, as the API server has them."""
        found = await self.client.list(DEPLOYMENTS, self.namespace)
        return {item["metadata"]["name"]: item["spec"] for item in found.items}

    def _look(self, plan: RoutingPlan) -> RolloutStep:
        cluster = ClusterView(
            nodes=tuple(self.nodes.objects.values()),
            pods=tuple(self.pods.objects.values()),
            deployments=tuple(self.deployments.objects.values()),
            template=_template(),
        )
        state = RouterState("router", "plan", self.index["epoch"], self.index["generation"], "f" * 16)
        measured = Measured(routers={"router": Fact(state, Quality.VALUE, "router", 0.0)})
        plans = () if self.before is None else (in_force(self.before),)
        now = asyncio.get_running_loop().time()
        snapshot = snapshot_of(self.fleet, cluster, now=now, plans=plans, measured=measured)
        step = plan_rollout(snapshot, plan, self.index, RULES)
        self._publish(step.draining, step.unlisted)
        return step

    def _publish(self, draining: frozenset[str], unlisted: frozenset[str]) -> None:
        """Each Ready pod has a slot named after its uid; a change wakes the next look."""
        slots = []
        for pod in self._own_pods():
            slot = f"slot-{pod['metadata']['uid']}"
            if _ready(pod) and pod["metadata"]["uid"] not in unlisted:
                away = slot in draining
                state = {"state": "draining" if away else "serving", "weightMilli": 0 if away else 1000}
                slots.append({"slot": slot, "podUID": pod["metadata"]["uid"], **state})
        if slots != self.index["slots"]:
            self.index = self.index | {"generation": self.index["generation"] + 1, "slots": slots}
            asyncio.get_running_loop().call_soon(self.changed.set)

    def _own_pods(self) -> list[Any]:
        return [pod for (namespace, _), pod in sorted(self.pods.objects.items()) if namespace == self.namespace]

    def _serving_gpus(self) -> int:
        gone = {slot["podUID"] for slot in self.index["slots"] if slot["state"] == "draining"}
        ready = [pod for pod in self._own_pods() if _ready(pod) and pod["metadata"]["uid"] not in gone]
        return sum(int(pod["metadata"]["labels"]["kvplan.dev/configuration"][2:]) for pod in ready)

    def _ledger(self) -> Ledger:
        return ledger(self.nodes.objects.values(), self.pods.objects.values(), GPU)

    def _pods_changed(self, *_change: Any) -> None:
        self.overdrawn += self._ledger().overdrawn() if self.pods.synced.is_set() else ()
        self.fewest_gpus = min(self.fewest_gpus, self._serving_gpus())
        self.changed.set()

    def _wake(self, *_change: Any) -> None:
        self.changed.set()


async def test_there_and_back_on_full_gpus_ends_with_the_same_specs(client: Client, namespace: str) -> None:
    operator = Operator(client, namespace)
    async with operator.watching():
        await operator.roll_out(FOURS)
        first = copy.deepcopy(await operator.specs())
        there = await operator.roll_out(MIXED)
        fewest = operator.fewest_gpus
        assert {name for name, spec in (await operator.specs()).items()} != set(first)
        back = await operator.roll_out(FOURS)
        assert await operator.specs() == first
    assert operator.overdrawn == []
    assert min(fewest, operator.fewest_gpus) >= 12
    assert [line.split()[0] for line in there].count("drain") == 4
    assert [line.split()[0] for line in back].count("drain") == 5
    pods = operator._own_pods()
    assert sorted(node_of(pod) for pod in pods) == sorted([ONE, TWO, THREE] * 2)


def _in(made: ServingFleet, namespace: str) -> ServingFleet:
    return made.model_copy(update={"metadata": made.metadata.model_copy(update={"namespace": namespace})})


def _template() -> dict[str, Any]:
    """Pods without the long start and end of an engine: simulated ones have neither."""
    template = pod_template()
    template["template"]["spec"]["containers"][0]["image"] = "vllm:0.32.0"
    return template


def _ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
