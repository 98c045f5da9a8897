"""Engine stand-ins behind the router: real answers, the engines' own counts, a restart that finds them busy."""

import asyncio
import json
import re
from typing import Any

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, eventually
from e2e.router.parts import Layout

pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]


@pytest.fixture(scope="module")
def layout() -> Layout:
    return Layout(upstreams=2, engine=("--max-model-len=4096", "--num-gpu-blocks-override=512", "--shutdown-timeout=5"))


def completion(tokens: int, stream: bool = False) -> bytes:
    body: dict[str, Any] = {"model": "tiny", "prompt": "hello", "max_tokens": tokens, "ignore_eos": True}
    return json.dumps(body | ({"stream": True} if stream else {})).encode()


def running(bed: Bed, number: int) -> int:
    page = bed.engine_page(number)
    return sum(
        round(float(v)) for v in re.findall(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)", page, re.M)
    )


async def test_answers_and_streams_are_the_engines_own(bed: Bed) -> None:
    async with Client(bed) as client:
        whole = await client.ask(body=completion(5))
        stream = await client.ask(body=completion(5, stream=True))
    assert json.loads(whole.body)["usage"]["completion_tokens"] == 5
    assert re.search(r"-kvr100", json.loads(whole.body)["id"])
    assert stream.body.endswith(b"data: [DONE]\n\n")


async def test_in_flight_is_what_the_engines_run(bed: Bed) -> None:
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.ask(body=completion(4000, stream=True))) for _ in range(6)]
        await eventually(bed, lambda: sum(running(bed, n) for n in range(2)) == 6, "six running")
        assert {n: running(bed, n) for n in range(2)} == {n: bed.in_flight().get(f"tp1-{n}", 0) for n in range(2)}
        for stream in streams:
            stream.cancel()
        await asyncio.wait(streams)
        await eventually(bed, lambda: sum(running(bed, n) for n in range(2)) == 0, "the engines idle")


async def test_a_restarted_router_reserves_for_what_the_engines_still_run(bed: Bed) -> None:
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.ask(body=completion(4000, stream=True))) for _ in range(3)]
        await eventually(bed, lambda: sum(running(bed, n) for n in range(2)) == 3, "three running")
        await asyncio.to_thread(bed.routers[0].kill)
        await asyncio.to_thread(bed.start_router, 0)
        state = bed.state()
        assert (state["inFlight"], sum(state["reserved"].values())) == ({}, 300)
        for stream in streams:
            stream.cancel()
        await asyncio.wait(streams)
        await eventually(bed, lambda: not bed.state()["reserved"], "nothing left to remember")
        await eventually(bed, bed.endpoints_healthy, "Envoy seeing the router")


async def test_a_dead_engine_is_not_picked_until_it_is_back(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"a": [1]}))
    await asyncio.to_thread(bed.upstreams[1].kill)
    await eventually(bed, lambda: "UNHEALTHY" in (bed.directory / "endpoints.json").read_text(), "the death noticed")
    async with Client(bed) as client:
        answers = [await client.ask("a", body=completion(1)) for _ in range(5)]
        assert {a.status for a in answers} == {200}
        bed.upstreams[1].start()
        await eventually(bed, lambda: "UNHEALTHY" not in (bed.directory / "endpoints.json").read_text(), "it is back")
        assert (await client.ask("a", body=completion(1))).status == 200
    assert 'kvplan_router_served_elsewhere_total{fleet="default/fleet"} 0.0' in bed.metrics()
