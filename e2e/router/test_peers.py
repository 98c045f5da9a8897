"""Two router processes of one fleet: they tell each other what is in flight, and share every budget."""

import asyncio
import re
import signal

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, eventually
from e2e.router.parts import Layout
from e2e.router.tables import ClassPolicy

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]

SHARES = {"router-0": 500, "router-1": 500}


@pytest.fixture(scope="module")
def layout() -> Layout:
    return Layout(upstreams=2, routers=2)


def limits(bed: Bed, router: int) -> list[float]:
    return [float(value) for value in re.findall(r"kvplan_router_limit_tokens\{.*\} (\S+)", bed.metrics(router))]


def reserved(bed: Bed) -> int:
    return sum(sum(bed.state(n)["reserved"].values()) for n in range(2))


async def test_each_process_owns_its_share_and_together_they_never_pass_the_budget(bed: Bed) -> None:
    tight = ClassPolicy(reservation_tokens=100, shed="429")
    bed.publish(bed.table.next(budget_tokens=400, routers=SHARES, classes=(tight,)))
    assert [limits(bed, n) for n in range(2)] == [[200.0, 200.0]] * 2
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.stream(10_000, 0.02)) for _ in range(30)]
        await eventually(bed, lambda: reserved(bed) == 800, "both budgets used by both processes")
        refused = await client.ask()
        done, running = await asyncio.wait(streams, timeout=0.5)
        assert (len(running), {task.result().status for task in done}) == (8, {429})
        for stream in running:
            stream.cancel()
        await asyncio.wait(running)
    assert refused.status == 429


async def test_a_process_that_the_index_does_not_list_is_not_asked(bed: Bed) -> None:
    bed.publish(bed.table.next(routers={"router-0": 1000}))
    await eventually(bed, lambda: not bed.endpoints_healthy(), "Envoy seeing one router go")
    before = asked(bed, 1)
    async with Client(bed) as client:
        answers = [await client.ask() for _ in range(20)]
    assert {a.status for a in answers} == {200}
    assert asked(bed, 1) == before
    bed.publish(bed.table.next(routers={}))
    await eventually(bed, bed.endpoints_healthy, "Envoy seeing both")


def asked(bed: Bed, router: int) -> float:
    found = re.findall(r"kvplan_router_requests_total\{.*\} (\S+)", bed.metrics(router))
    return sum(map(float, found))


async def test_load_is_spread_by_what_all_processes_have_in_flight(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"hot": [0, 1]}, routers={}))
    async with Client(bed) as client:
        streams: list[asyncio.Task[object]] = []
        for _ in range(20):
            streams.append(asyncio.create_task(client.stream(10_000, 0.02, key="hot")))
            await eventually(bed, lambda: sum(bed.in_flight().values()) == len(streams), "one more")
            await asyncio.sleep(0.15)  # the peers' next report
        assert (bed.load(0), bed.load(1)) == (10, 10)
        for stream in streams:
            stream.cancel()
        await asyncio.wait(streams)


async def test_a_silent_peer_leaves_the_sum(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"hot": [0, 1]}, routers={}))
    async with Client(bed) as client:
        bed.routers[1].send(signal.SIGSTOP)
        answers = [await client.ask("hot") for _ in range(20)]
        bed.routers[1].send(signal.SIGCONT)
    assert {a.status for a in answers} == {200}
    await eventually(bed, bed.endpoints_healthy, "Envoy seeing both")
