"""Which engines are taken for dead: those where nobody listens, at once; those that are silent, after a while."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, ClientTimeout

from kvplan_router.destinations.engines import SILENCES_MAX, Engines


@asynccontextmanager
async def engine(reply: bytes) -> AsyncIterator[str]:
    """A server with one answer to everything; an empty one is silence. Yields its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_connections.add(writer)
        await reader.readuntil(b"\r\n\r\n")
        if reply:
            writer.write(b"HTTP/1.1 " + reply + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        await reader.read()  # until the client leaves
        writer.close()
        await writer.wait_closed()
        open_connections.discard(writer)

    open_connections: set[asyncio.StreamWriter] = set()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"{host}:{port}"
    server.close()
    async with asyncio.timeout(5):
        while open_connections:
            await asyncio.sleep(0)


async def verdicts(address: str, times: int) -> list[bool]:
    async with ClientSession() as session:
        engines = Engines(session)
        return [bool(await engines.healthy([address])) for _ in range(times)]


@pytest.mark.parametrize(
    ("reply", "healthy"), [(b"200 OK", True), (b"503 Service Unavailable", False)], ids=["well", "its core is dead"]
)
def test_an_engine_that_answers_is_what_it_says(reply: bytes, healthy: bool) -> None:
    async def scenario() -> list[bool]:
        async with engine(reply) as address:
            return await verdicts(address, 1)

    assert asyncio.run(scenario()) == [healthy]


def test_where_nobody_listens_the_engine_is_dead_at_once() -> None:
    async def scenario() -> list[bool]:
        async with engine(b"") as address:
            pass
        return await verdicts(address, 1)

    assert asyncio.run(scenario()) == [False]


def test_a_silent_engine_is_busy_before_it_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvplan_router.destinations.engines._PROBE", ClientTimeout(total=0.02))

    async def scenario() -> list[bool]:
        async with engine(b"") as address:
            return await verdicts(address, SILENCES_MAX + 1)

    assert asyncio.run(scenario()) == [True] * (SILENCES_MAX - 1) + [False] * 2


def test_of_an_engine_that_does_not_answer_nothing_is_known() -> None:
    async def scenario() -> dict[str, int]:
        async with engine(b"") as address:
            pass
        async with ClientSession() as session:
            return await Engines(session).requests_held([address])

    assert asyncio.run(scenario()) == {}
