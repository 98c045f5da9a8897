"""What breaks: routers killed, frozen and drained, destinations killed. What a client may see of it: nothing."""

import asyncio
import signal

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, Load, eventually
from e2e.router.parts import Layout, with_options

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]

UNPLANNED = "http.gateway.ext_proc.failure_mode_allowed"
"""Envoy's count of requests that went on without a router."""


@pytest.fixture(scope="module")
def layout() -> Layout:
    """Three upstreams, two routers that read no answers: one that reads waits for them when it drains."""
    return with_options(Layout(upstreams=3, routers=2), sample_milli="0")


def revive(bed: Bed, number: int) -> None:
    bed.start_router(number)
    bed.until(bed.endpoints_healthy, "Envoy seeing the routers")


async def test_both_routers_killed_under_load_fail_no_request(bed: Bed) -> None:
    async with Client(bed) as client, Load(client, workers=6) as load:
        await load.answered(200)
        for router in bed.routers:
            router.kill()
        await load.answered(400)
        await asyncio.gather(*(asyncio.to_thread(revive, bed, n) for n in range(2)))
        unplanned = bed.envoy_counter(UNPLANNED)
        await load.answered(200)
        assert bed.envoy_counter(UNPLANNED) == unplanned, "every worker of Envoy asks as soon as Envoy says healthy"
    assert set(load.statuses) == {200}


async def test_a_killed_router_breaks_no_open_stream(bed: Bed) -> None:
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.stream(100, 0.01)) for _ in range(20)]
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 20, "twenty streams")
        bed.routers[0].kill()
        answers = await asyncio.gather(*streams)
        await asyncio.to_thread(revive, bed, 0)
    assert [a.body.endswith(b"data: [DONE]\n\n") for a in answers] == [True] * 20


async def test_a_frozen_router_delays_and_fails_no_request(bed: Bed) -> None:
    async with Client(bed) as client, Load(client, workers=6) as load:
        await load.answered(100)
        bed.routers[0].send(signal.SIGSTOP)
        await load.answered(300)
        bed.routers[0].send(signal.SIGCONT)
        await load.answered(100)
    assert set(load.statuses) == {200}
    await eventually(bed, bed.endpoints_healthy, "Envoy seeing the routers")


async def test_a_router_that_drains_under_load_fails_no_request_and_breaks_no_stream(bed: Bed) -> None:
    async with Client(bed) as client, Load(client, workers=4) as load:
        streams = [asyncio.create_task(client.stream(400, 0.01)) for _ in range(20)]
        await eventually(bed, lambda: sum(bed.in_flight().values()) >= 20, "twenty streams")
        await asyncio.to_thread(bed.routers[0].stop)
        assert not any(stream.done() for stream in streams), "the router waited for the streams to end"
        await load.answered(100)
        answers = await asyncio.gather(*streams)
        await asyncio.to_thread(revive, bed, 0)
    assert set(load.statuses) == {200}
    assert [a.body.endswith(b"data: [DONE]\n\n") for a in answers] == [True] * 20


async def test_a_router_that_drains_reads_the_answers_that_it_reads_to_their_end(layout: Layout) -> None:
    with Bed(with_options(layout, sample_milli="1000")) as bed:
        async with Client(bed) as client:
            streams = [asyncio.create_task(client.stream(100, 0.01)) for _ in range(20)]
            await eventually(bed, lambda: sum(bed.in_flight().values()) == 20, "twenty streams")
            read = sum(bed.state(0)["inFlight"].values())
            await asyncio.to_thread(bed.routers[0].stop)
            assert sum(bed.load(upstream) for upstream in range(3)) <= 20 - read, "it waited for its own"
            answers = await asyncio.gather(*streams)
        assert [a.body.endswith(b"data: [DONE]\n\n") for a in answers] == [True] * 20


async def test_a_destination_killed_under_load_fails_no_request_after_the_open_ones(bed: Bed) -> None:
    async with Client(bed) as client, Load(client, workers=4) as load:
        await load.answered(100)
        bed.upstreams[2].kill()
        await load.answered(300)
        broken = load.statuses.total() - load.statuses[200]
    bed.upstreams[2].start()
    assert broken <= 4, "at most the requests that the destination was answering"
