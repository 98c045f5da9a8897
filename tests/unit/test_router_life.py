"""When a router process is ready: gateways send requests to one that has a share, or has waited for long."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from aiohttp import ClientError, ClientSession

from e2e.harness.ports import PortLease
from e2e.router.tables import SECRET, WrittenTable
from kvplan_router.process import serve
from kvplan_router.settings import RouterSettings

NEVER, AT_ONCE = 3_600.0, 0.0
OF_ANOTHER = WrittenTable(["127.0.0.1:9"], routers={"another": 1000})
OF_BOTH = OF_ANOTHER.next(routers={"another": 500, "this": 500})


class Told:
    """A source whose tables a test publishes."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[bytes] = asyncio.Queue()

    async def texts(self) -> AsyncIterator[bytes]:
        while True:
            yield await self.published.get()

    async def shards(self, _names: Iterable[str]) -> Mapping[str, bytes]:
        return {}

    def publish(self, table: WrittenTable) -> None:
        self.published.put_nowait(table.text().encode())


class Running:
    """A router process that runs in the test's loop."""

    def __init__(self, admin: str, session: ClientSession) -> None:
        self.tables, self._admin, self._session = Told(), admin, session

    async def generation(self, wanted: int) -> None:
        """Return when the table of a generation is in force."""
        while (await self._get("/state"))[1].find(f'"generation":{wanted}') < 0:
            await asyncio.sleep(0.01)

    async def ready(self) -> bool:
        return (await self._get("/readyz"))[0] == 200

    async def _get(self, path: str) -> tuple[int, str]:
        try:
            async with self._session.get(f"http://{self._admin}{path}") as response:
                return response.status, (await response.text()).replace(" ", "")
        except ClientError:
            return 0, ""  # it does not listen yet


@asynccontextmanager
async def router(share_patience_seconds: float) -> AsyncIterator[Running]:
    ports = PortLease()
    admin, listen = (f"127.0.0.1:{ports.take()}" for _ in range(2))
    settings = RouterSettings(
        "serving", "fleet", identity="this", transport="aio", listen=listen, health="", admin=admin, insecure=True,
        readiness="none", share_patience_seconds=share_patience_seconds, lame_duck_seconds=0, grace_seconds=0,
    )  # fmt: skip
    async with asyncio.timeout(30), ClientSession() as session:
        running = Running(admin, session)
        serving = asyncio.create_task(serve(settings, SECRET, running.tables))
        try:
            yield running
        finally:
            signal.raise_signal(signal.SIGTERM)
            await serving
            ports.release()


async def becomes_ready(running: Running) -> None:
    while not await running.ready():
        await asyncio.sleep(0.01)


def test_a_router_is_ready_when_the_index_gives_it_a_share_and_not_before() -> None:
    async def scenario() -> None:
        async with router(NEVER) as running:
            running.tables.publish(OF_ANOTHER)
            await running.generation(1)
            assert not await running.ready()
            running.tables.publish(OF_BOTH)
            await becomes_ready(running)

    asyncio.run(scenario())


def test_a_router_that_waited_long_for_a_share_is_ready_without() -> None:
    async def scenario() -> None:
        async with router(AT_ONCE) as running:
            running.tables.publish(OF_ANOTHER)
            await becomes_ready(running)

    asyncio.run(scenario())
