"""Requests in flight, as the router counts them, against the upstreams' own count whenever the load pauses."""

import asyncio
import random
from collections.abc import Callable

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, Load, eventually
from e2e.router.filters import be_patient
from e2e.router.parts import Layout, with_options

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]


@pytest.fixture(scope="module")
def layout() -> Layout:
    """Three upstreams; nobody probes them, so that a dead one is still picked and only a retry saves the request."""
    return with_options(Layout(upstreams=3, edit=be_patient), readiness="none", sample_milli="100")


def agrees(bed: Bed) -> bool:
    counted = bed.in_flight()
    return all(counted.get(f"tp1-{n}", 0) == bed.load(n) for n in range(len(bed.addresses)) if bed.upstreams[n].running)


def counts(bed: Bed, requests: int) -> Callable[[], bool]:
    return lambda: sum(bed.in_flight().values()) == requests


async def test_the_count_is_the_upstreams_own_at_every_pause_and_zero_at_the_end(bed: Bed) -> None:
    seed = random.Random(7)
    async with Client(bed) as client:
        open_streams: list[asyncio.Task[object]] = []
        for _ in range(6):
            open_streams += [asyncio.create_task(client.stream(10_000, 0.02)) for _ in range(12)]
            await asyncio.gather(*(client.ask(headers={"x-mirror-status": status}) for status in ("200", "500", "404")))
            await eventually(bed, counts(bed, len(open_streams)), "all open")
            assert agrees(bed)
            leaving = seed.sample(open_streams, 5)
            for stream in leaving:
                stream.cancel()
                open_streams.remove(stream)
            await eventually(bed, counts(bed, len(open_streams)), "the aborts counted")
            await eventually(bed, lambda: agrees(bed), "the count agreeing")
        for stream in open_streams:
            stream.cancel()
        await asyncio.wait(open_streams)
        await eventually(bed, lambda: not bed.in_flight() and agrees(bed), "zero at the end")


async def test_a_retried_request_is_counted_where_it_is_served(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"dead": [2], "alive": [0]}))
    bed.upstreams[2].kill()
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.stream(10_000, 0.02, key="dead")) for _ in range(8)]
        await eventually(bed, lambda: bed.load(0) + bed.load(1) == 8, "eight served elsewhere")
        await eventually(bed, lambda: agrees(bed) and "tp1-2" not in bed.in_flight(), "the count moved")
        for stream in streams:
            stream.cancel()
        await asyncio.wait(streams)
    bed.upstreams[2].start()
    assert 'kvplan_router_served_elsewhere_total{fleet="default/fleet"} 8.0' in bed.metrics()


async def test_output_lengths_of_a_sample_are_measured_and_the_ratio_says_how_many(bed: Bed) -> None:
    async with Client(bed) as client, Load(client) as load:
        await load.answered(300)
    await eventually(bed, lambda: not bed.in_flight(), "all ended")
    page = bed.metrics()
    ratio = float(
        next(line for line in page.splitlines() if line.startswith("kvplan_router_output_sampling_ratio{")).split()[-1]
    )
    seen = [line for line in page.splitlines() if line.startswith('kvplan_router_output_tokens_count{class="chat"')]
    assert 0.02 < ratio < 0.3
    assert float(seen[0].split()[-1]) > 0


async def test_hundreds_of_clients_that_leave_at_once_break_nobody_elses_stream(bed: Bed) -> None:
    async with Client(bed) as client:
        staying = [asyncio.create_task(client.stream(400, 0.02)) for _ in range(10)]
        leaving: list[asyncio.Task[object]] = []
        await eventually(bed, counts(bed, 10), "ten that stay")
        for group in range(1, 16):  # not all within the 250 ms that Envoy waits for a decision
            leaving += [asyncio.create_task(client.stream(10_000, 0.5)) for _ in range(20)]
            await eventually(bed, counts(bed, 10 + 20 * group), "twenty more")
        for stream in leaving:
            stream.cancel()
        await asyncio.wait(leaving)
        await eventually(bed, counts(bed, 10), "those who left counted")
        answers = await asyncio.gather(*staying)
    assert [a.body.endswith(b"data: [DONE]\n\n") for a in answers] == [True] * 10
    assert bed.envoy_counter("cluster.kvplan-router.upstream_cx_total") == 1, "the connection to the router held"
