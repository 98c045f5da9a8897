"""What a client sees: planned destinations, streams, refusals, subsets, bodies, drains."""

import asyncio
import hashlib

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, eventually
from e2e.router.tables import ClassPolicy

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]

SUBSET = "x-gateway-destination-endpoint-subset"


async def test_a_planned_key_goes_to_its_home_and_nowhere_else(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"a": [0], "b": [1]}))
    async with Client(bed) as client:
        answers = {key: [await client.ask(key) for _ in range(10)] for key in "ab"}
    assert {a.address for a in answers["a"]} == {bed.addresses[0]}
    assert {a.address for a in answers["b"]} == {bed.addresses[1]}


async def test_a_key_with_two_homes_is_spread_over_both(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"hot": [0, 1]}))
    async with Client(bed) as client:
        answers = await asyncio.gather(*(client.ask("hot") for _ in range(40)))
    assert {a.address for a in answers} == set(bed.addresses)


async def test_a_session_stays_on_one_member_of_a_home(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"hot": [0, 1]}))
    async with Client(bed) as client:
        answers = [await client.ask("hot", headers={"x-session-id": "s-1"}) for _ in range(12)]
    assert len({a.address for a in answers}) == 1


async def test_the_reservation_rides_on_the_request_id_and_a_clients_own_claim_does_not(bed: Bed) -> None:
    async with Client(bed) as client:
        answer = await client.ask(headers={"x-request-id": "mine-kvr999999"})
    assert answer.told["id"].endswith("-kvr100")
    assert "999999" not in answer.told["id"]


async def test_server_sent_events_arrive_whole_and_in_order(bed: Bed) -> None:
    async with Client(bed) as client:
        answer = await client.stream(events=20, pause_seconds=0.005)
    lines = answer.body.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    assert [f'"event": {n}}}' in line for n, line in enumerate(lines[:-2])] == [True] * 20


async def test_a_client_that_leaves_is_no_longer_in_flight(bed: Bed) -> None:
    async with Client(bed) as client:
        leaving = asyncio.create_task(client.stream(events=1000, pause_seconds=0.01))
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 1, "one stream in flight")
        leaving.cancel()
        await asyncio.wait({leaving})
        await eventually(bed, lambda: not bed.in_flight(), "nothing in flight")
        await eventually(bed, lambda: bed.load(0) + bed.load(1) == 0, "the upstreams idle")


async def test_a_request_without_room_is_refused_with_a_time_to_come_back(bed: Bed) -> None:
    tight = ClassPolicy(reservation_tokens=100, shed="429")
    bed.publish(bed.table.next(budget_tokens=100, classes=(tight,)))
    async with Client(bed) as client:
        held = [asyncio.create_task(client.stream(1000, 0.01)) for _ in bed.addresses]
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 2, "both budgets used")
        refused = await client.ask()
        for stream in held:
            stream.cancel()
        await asyncio.wait(held)
        await eventually(bed, lambda: not bed.in_flight(), "room again")
        assert (await client.ask()).status == 200
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.told["error"]["code"] == 429


async def test_a_request_that_may_wait_is_answered_when_another_ends(bed: Bed) -> None:
    patient = ClassPolicy(reservation_tokens=100, queue=(10, 5000))
    bed.publish(bed.table.next(budget_tokens=100, classes=(patient,)))
    async with Client(bed) as client:
        held = [asyncio.create_task(client.stream(1000, 0.01)) for _ in bed.addresses]
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 2, "both budgets used")
        waiting = asyncio.create_task(client.ask())
        await eventually(bed, lambda: 'kvplan_router_waiting{fleet="default/fleet"} 1.0' in bed.metrics(), "one waits")
        held[0].cancel()
        answer = await waiting
        held[1].cancel()
        await asyncio.wait(held)
    assert answer.status == 200


async def test_a_request_that_waits_past_its_deadline_is_refused(bed: Bed) -> None:
    hasty = ClassPolicy(reservation_tokens=100, queue=(10, 400))
    bed.publish(bed.table.next(budget_tokens=100, classes=(hasty,)))
    async with Client(bed) as client:
        held = [asyncio.create_task(client.stream(1000, 0.01)) for _ in bed.addresses]
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 2, "both budgets used")
        refused = await client.ask()
        for stream in held:
            stream.cancel()
        await asyncio.wait(held)
    assert refused.status == 429


async def test_a_subset_hint_is_kept_and_a_foreign_one_answers_503(bed: Bed) -> None:
    only = bed.addresses[1]
    async with Client(bed) as client:
        kept = [await client.ask(headers={SUBSET: only}) for _ in range(8)]
        bare = await client.ask(headers={SUBSET: only.rpartition(":")[0]})
        foreign = await client.ask(headers={SUBSET: "192.0.2.1:80"})
    assert {a.address for a in kept} == {only}
    assert bare.status == 200
    assert foreign.status == 503


async def test_a_get_is_answered_at_once(bed: Bed) -> None:
    async with Client(bed) as client:
        answer = await client.ask(method="GET", path="/v1/models")
    assert answer.status == 200


@pytest.mark.parametrize("size", [2_000, 65_536, 220_000, 1_048_576])
async def test_bodies_reach_the_upstream_byte_by_byte(bed: Bed, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    async with Client(bed) as client:
        answer = await client.ask(body=body[:size])
    assert answer.told["bytes"] == size
    assert answer.told["sha256"] == hashlib.sha256(body[:size]).hexdigest()


async def test_a_draining_destination_gets_nothing_new_and_keeps_what_it_has(bed: Bed) -> None:
    bed.publish(bed.table.next(homes={"a": [0]}))
    async with Client(bed) as client:
        kept = asyncio.create_task(client.stream(60, 0.01, key="a"))
        await eventually(bed, lambda: bed.in_flight() == {"tp1-0": 1}, "one stream on the first")
        await asyncio.to_thread(bed.publish, bed.table.next(draining=frozenset({0})))
        after = [await client.ask("a") for _ in range(10)]
        stream = await kept
    assert {a.address for a in after} == {bed.addresses[1]}
    assert stream.body.endswith(b"data: [DONE]\n\n")


async def test_strange_headers_and_bodies_break_nothing(bed: Bed) -> None:
    async with Client(bed) as client:
        odd = [
            await client.ask(key="\xff\xfe\xfd"),
            await client.ask(key="k" * 6_000),
            await client.ask(body=b"\x00" * 5000),
            await client.ask(headers={"x-session-id": "", "x-request-id": ""}),
            await client.ask(headers={"x-request-id": "-kvr-kvr1-kvr"}),
        ]
        assert [answer.status for answer in odd] == [200] * len(odd)
        assert (await client.ask()).status == 200
