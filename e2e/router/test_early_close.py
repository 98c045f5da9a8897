"""Gateways whose streams end with the request: how many are in flight is an estimate that the engines correct."""

import asyncio
from typing import Any

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, eventually
from e2e.router.filters import ext_proc
from e2e.router.parts import Layout, with_options
from kvplan_router.envoy.filters import ExtProcOptions, ext_proc_filter

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]


def as_gateways_do(document: dict[str, Any]) -> None:
    """The filter that our manifests give to Istio."""
    ours = ext_proc(document)
    cluster = ours["grpc_service"]["envoy_grpc"]["cluster_name"]
    ours.update(ext_proc_filter(ExtProcOptions(cluster, waits_for_trailers=False))["typed_config"])


@pytest.fixture(scope="module")
def layout() -> Layout:
    return with_options(Layout(edit=as_gateways_do), in_flight="early-close")


async def test_the_estimate_follows_the_engines(bed: Bed) -> None:
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.stream(10_000, 0.02)) for _ in range(10)]
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 10, "ten in flight")
        for stream in streams[:6]:
            stream.cancel()
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 4, "six of them ended")
        assert all(bed.in_flight().get(f"tp1-{n}", 0) == bed.load(n) for n in range(2))
        assert 'kvplan_router_in_flight_estimate_error{fleet="default/fleet",slot="tp1-0"}' in bed.metrics()
        assert 'kvplan_router_in_flight_mode{fleet="default/fleet",mode="early-close"} 1.0' in bed.metrics()
        for stream in streams[6:]:
            stream.cancel()
        await asyncio.wait(streams)


async def test_a_killed_router_breaks_no_answer(bed: Bed) -> None:
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.stream(100, 0.01)) for _ in range(10)]
        await eventually(bed, lambda: bed.load(0) + bed.load(1) == 10, "ten answers under way")
        bed.routers[0].kill()
        answers = await asyncio.gather(*streams)
        await asyncio.to_thread(bed.start_router, 0)
        await eventually(bed, bed.endpoints_healthy, "Envoy seeing the router")
    assert [a.body.endswith(b"data: [DONE]\n\n") for a in answers] == [True] * 10
