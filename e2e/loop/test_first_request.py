"""From `kubectl apply` on an empty namespace to a request that lands where the table says.

Nothing is played: API server, Prometheus, operator, routers and Envoys are the real ones, engines are stand-ins. No
class states its rate: routers count it from requests that nobody can answer yet.
"""

import asyncio
from collections import Counter
from typing import Any

import pytest

from e2e.loop import looking, manifests
from e2e.loop.asking import Asked, End, ask
from e2e.loop.gateways import Gateways, following
from e2e.loop.load import Load
from e2e.loop.shapes import Shape
from e2e.loop.world import NAMESPACE, World
from kvplan_operator.kube.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

MODEL = "Qwen/Qwen3-32B"
SHAPES = {
    "chat": Shape("chat", [(600, 60), (1200, 120)], keys=3, shared_tokens=512),
    "code": Shape("code", [(1000, 10), (2000, 20)]),
    "summarise": Shape("summarise", [(2600, 100)]),
}
MIX = {"chat": 6.0, "code": 2.0, "summarise": 1.0}
HOT = "chat-0"
"""The hottest key of the class `chat`, as its shape draws them."""


async def eventually(check: Any, what: str, seconds: float = 60.0) -> None:
    """Wait, while the load goes on, until something holds."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(check):
            await asyncio.sleep(0.5)


def pods_by_node(world: World) -> Counter[tuple[str, str]]:
    """Ready engines by configuration and node."""
    pods = world.get("pods", looking.ENGINES)["items"]
    ready = [p for p in pods if any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"]["conditions"])]
    return Counter((pod["metadata"]["labels"]["kvplan.dev/configuration"], pod["spec"]["nodeName"]) for pod in ready)


def planned_by_node(plan: Any) -> Counter[tuple[str, str]]:
    """Groups that a plan places by configuration and node."""
    return Counter((g["configuration"], at["stages"][0]) for g in plan["spec"]["groups"] for at in g["placements"])


def test_an_applied_fleet_is_planned_from_what_routers_count_and_requests_land_where_the_table_says(
    world: World,
) -> None:
    world.apply(*manifests.sample("fleet"), *manifests.sample("classes"))
    asyncio.run(first_request(world))


async def first_request(world: World) -> None:
    client = await Client.connect(world.cluster.kubeconfig)
    try:
        async with following(client, NAMESPACE) as gateways:
            await eventually(gateways.urls, "a router pod is Ready")
            async with Load(gateways.next, SHAPES, MIX, MODEL):
                await eventually(lambda: looking.condition(world, "Ready")[:2] == ("True", "AsPlanned"), "a plan")
                await eventually(lambda: looking.homes(world, "chat", HOT), "a home for the hottest key")
            await check(world, gateways)
    finally:
        await client.close()


async def check(world: World, gateways: Gateways) -> None:
    """The plan stands, every router has its table, and a key's requests all go to its home."""
    plan, index = looking.in_force(world), looking.index(world)
    assert plan["spec"]["groups"]
    assert pods_by_node(world) == planned_by_node(plan)
    assert index["mode"] == "plan"
    assert index["planDigest"] == world.get("fleet", manifests.FLEET)["status"]["currentPlan"]["digest"]
    await eventually(lambda: acknowledged(world), "every router has the table")

    home = looking.homes(world, "chat", HOT)
    address = {slot["slot"]: slot["address"].partition(":")[0] for slot in index["slots"]}[home[0]]
    before = looking.finished(world)
    asked = [Asked("chat", "Why?", 8, key=HOT, stream=number % 2 == 0) for number in range(6)]
    async with Load.session() as session:
        ended = [await ask(session, gateways.next(), one, MODEL) for one in asked]
    after = looking.finished(world)
    assert [one.end for one in ended] == [End.WHOLE] * len(asked)
    assert {one: after[one] - before[one] for one in after if after[one] != before[one]} == {address: len(asked)}


def acknowledged(world: World) -> bool:
    """Whether each router has the index that is published."""
    index = looking.index(world)
    said = looking.routers(world)
    return len(said) == 2 and all((r["epoch"], r["generation"]) == (index["epoch"], index["generation"]) for r in said)
