"""Every body mode that a gateway may choose: the same destinations, and bodies byte by byte."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from functools import partial

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, eventually
from e2e.router.filters import GATEWAYS, behave_like
from e2e.router.parts import Layout, with_options
from e2e.router.tables import ClassPolicy

pytestmark = pytest.mark.e2e

BY_FIELD = ClassPolicy(key_rules=({"kind": "field", "name": "user"},))
READS_BODIES = sorted(set(GATEWAYS) - {"streamed both ways"})


@pytest.fixture(scope="module", params=sorted(GATEWAYS))
def gateway(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def bed(gateway: str) -> Iterator[Bed]:
    """A bed behind that gateway."""
    with Bed(with_options(Layout(edit=partial(behave_like, gateway)), in_flight="stream")) as running:
        yield running


@pytest.mark.parametrize("size", [0, 2_000, 65_536, 220_000, 1_048_576])
async def test_bodies_pass_byte_by_byte(bed: Bed, size: int) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    async with Client(bed) as client:
        answer = await client.ask(body=body)
    assert answer.status == 200
    assert (answer.told["bytes"], answer.told["sha256"]) == (size, hashlib.sha256(body).hexdigest())
    assert answer.told["id"].endswith("-kvr100")


async def test_a_header_key_goes_to_its_home(bed: Bed) -> None:
    bed.publish(bed.table.next(classes=bed.plain.classes, homes={"a": [0], "b": [1]}))
    async with Client(bed) as client:
        asked = [(n, await client.ask("ab"[n], body=b"x" * 100_000)) for n in (0, 1) for _ in range(4)]
    assert [answer.address for _, answer in asked] == [bed.addresses[n] for n, _ in asked]


async def test_a_body_key_goes_to_its_home_where_the_body_is_seen(bed: Bed, gateway: str) -> None:
    if gateway not in READS_BODIES:
        pytest.skip("this gateway sends the body only after the reply to the headers")
    users = {user: number for number, user in enumerate(("ann", "bob"))}
    homes = {user: [number] for user, number in users.items()}
    bed.publish(bed.table.next(classes=(BY_FIELD,), homes=homes))
    async with Client(bed) as client:
        for user, number in users.items():
            body = json.dumps({"user": user, "prompt": "x" * 200_000}).encode()
            answers = [await client.ask(body=body) for _ in range(4)]
            assert {a.address for a in answers} == {bed.addresses[number]}
            assert {a.told["sha256"] for a in answers} == {hashlib.sha256(body).hexdigest()}


async def test_a_get_is_answered_at_once(bed: Bed) -> None:
    async with Client(bed) as client:
        assert (await client.ask(method="GET", path="/v1/models")).status == 200


async def test_a_stream_is_in_flight_until_its_client_leaves(bed: Bed, gateway: str) -> None:
    if gateway == "buffered both ways":
        pytest.skip("this gateway holds a response back until it has ended")
    async with Client(bed) as client:
        stream = asyncio.create_task(client.stream(10_000, 0.01))
        await eventually(bed, lambda: sum(bed.in_flight().values()) == 1, "in flight")
        stream.cancel()
        await asyncio.wait({stream})
        await eventually(bed, lambda: not bed.in_flight(), "nothing in flight")


async def test_a_stream_arrives_whole(bed: Bed) -> None:
    async with Client(bed) as client:
        answer = await client.stream(events=30, pause_seconds=0.002)
    assert answer.body.count(b"data: ") == 31
    assert answer.body.endswith(b"data: [DONE]\n\n")
