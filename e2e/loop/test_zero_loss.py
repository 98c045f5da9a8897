"""A fleet changes its partition there and back under load, on full GPUs, while its operator crashes and a router goes.

Counted by the clients: no request fails, none is cut short, none is refused. The operator dies once after every kind of
step in each direction; one of two routers is replaced on the way back. GPUs and reservations are summed from outside.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from e2e.loop import looking, manifests
from e2e.loop.crashes import crashing
from e2e.loop.gateways import following
from e2e.loop.load import Load, Mix
from e2e.loop.shapes import Shape
from e2e.loop.watching import Watcher, watching
from e2e.loop.world import NAMESPACE, PLACE, World
from kvplan_operator.kube.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MODEL = "Qwen/Qwen3-32B"
MANY_CHATS = {"chat": 14.0, "code": 1.0, "summarise": 2.5}
LITTLE_OF_ALL = {"chat": 6.0, "code": 4.0, "summarise": 1.0}
SHAPES = {
    "chat": Shape("chat", [(200, 20), (400, 40)], keys=20, shared_tokens=128),
    "code": Shape("code", [(300, 8), (500, 16)]),
    "summarise": Shape("summarise", [(600, 40), (900, 60)]),
}
ARRIVING: Mix = {"chat": 14.0, "code": 9.0, "summarise": 3.0}
REQUESTS = 10_000
GPUS = 24
FLOOR = 500
"""`rollout.minAvailableMilli` of the sample."""
KINDS = {"create", "drain", "scale"}
"""Kinds of step that a change of partition has."""


def classes(rates: Mix) -> list[Any]:
    """The sample's classes with stated rates and so much patience that a busy machine makes nobody's request late."""
    documents = manifests.sample("classes")
    for document in documents:
        document["spec"]["arrivals"] = {"requestsPerSecondMilli": round(1000 * rates[document["metadata"]["name"]])}
        document["spec"]["queue"] = {"maxLength": 1000, "deadlineMilliseconds": 20_000}
    return documents


def approved() -> list[Any]:
    """The sample's fleet, changed by accepted digests alone."""
    documents = manifests.sample("fleet")
    documents[0]["spec"]["planPolicy"] = {"mode": "Approve"}
    return documents


class Fleet:
    """The fleet under test."""

    def __init__(self, world: World) -> None:
        self.world = world

    def patch(self, spec: Any) -> None:
        """Change the spec as git would."""
        arguments = ("patch", "fleet", manifests.FLEET, PLACE, "--type=merge", "--patch", json.dumps({"spec": spec}))
        self.world.cluster.kubectl(*arguments)

    async def proposal(self, other_than: str = "") -> str:
        """Digest of the plan that is proposed."""
        digest = ""
        async with asyncio.timeout(90):
            while digest in ("", other_than):
                await asyncio.sleep(0.5)
                digest = await asyncio.to_thread(self._candidate)
        return digest

    async def accept(self, digest: str, seconds: float = 400.0) -> None:
        """Accept a plan and return when it is in force."""
        await asyncio.to_thread(self.patch, {"acceptedPlan": {"digest": digest}})
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(self._follows, digest):
                await asyncio.sleep(0.5)

    def _candidate(self) -> str:
        return str(self.world.get("fleet", manifests.FLEET)["status"].get("candidatePlan", {}).get("digest", ""))

    def _follows(self, digest: str) -> bool:
        current = self.world.get("fleet", manifests.FLEET)["status"].get("currentPlan", {}).get("digest")
        ready = looking.condition(self.world, "Ready")[:2] == ("True", "AsPlanned")
        return current == digest and ready


@asynccontextmanager
async def two_plans(world: World) -> AsyncIterator[tuple[Fleet, str, str]]:
    """A fleet with two plans that use every GPU: few large groups, in force, and many small ones.

    The second is found for traffic that the first could not serve; then the traffic is stated as before, so that both
    hold and nothing but the accepted digest decides.
    """
    fleet = Fleet(world)
    world.apply(*approved(), *classes(LITTLE_OF_ALL))
    few = await fleet.proposal()
    await fleet.accept(few)
    world.apply(*classes(MANY_CHATS))
    many = await fleet.proposal(other_than=few)
    world.apply(*classes(LITTLE_OF_ALL))
    yield fleet, few, many


def configurations(world: World) -> dict[str, int]:
    """Groups of the plan in force."""
    plan = looking.in_force(world)
    return {group["configuration"]: len(group["placements"]) for group in plan["spec"]["groups"]}


def test_no_request_is_lost_while_a_full_fleet_changes_there_and_back(world: World) -> None:
    asyncio.run(there_and_back(world))


async def there_and_back(world: World) -> None:
    client = await Client.connect(world.cluster.kubeconfig)
    try:
        async with (
            two_plans(world) as (fleet, few, many),
            following(client, NAMESPACE) as gateways,
            watching(client, world) as watcher,
        ):
            before = configurations(world)
            async with Load(gateways.next, SHAPES, ARRIVING, MODEL) as load:
                async with crashing(world) as there:
                    await fleet.accept(many)
                assert configurations(world) != before
                async with crashing(world) as back:
                    replaced = asyncio.create_task(replace_a_router(world))
                    await fleet.accept(few)
                    await replaced
                await load.reach(REQUESTS)
            assert configurations(world) == before
            assert set(there.after) >= KINDS
            assert set(back.after) >= KINDS
            check(load, watcher)
    finally:
        await client.close()


async def replace_a_router(world: World) -> None:
    """Delete one of the router pods and wait until its successor is Ready."""
    pod = world.get("pods", looking.ROUTERS)["items"][0]["metadata"]["name"]
    await asyncio.to_thread(world.cluster.kubectl, "delete", "pod", pod, PLACE, "--wait=true", "--timeout=120s")
    await asyncio.to_thread(world.wait_for, "deployment/kvplan-router", "--for=jsonpath={.status.readyReplicas}=2", 90)


def check(load: Load, watcher: Watcher) -> None:
    """Nothing was lost, and nothing was ever promised twice."""
    tally = load.tally
    assert [(one.end, one.detail) for one in tally.bad] == []
    assert tally.total >= REQUESTS
    assert (watcher.overdrawn, watcher.over_budget) == ([], [])
    assert watcher.looks["events"] > 0
    assert watcher.looks["answers"] > 0
    assert watcher.fewest_gpus is not None
    assert watcher.fewest_gpus * 1000 >= GPUS * FLOOR
