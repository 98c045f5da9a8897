"""A client of the data plane that remembers how each request ended."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiohttp import ClientError, ClientSession, TCPConnector

from e2e.router.bed import Bed
from e2e.router.tables import KEY_HEADER

PATH = "/v1/completions"
NO_HEADERS: Mapping[str, str] = {}
_REFLECTED = re.compile(rb'"address": "([^"]+)"')


class Answer(NamedTuple):
    """One answer.

    Attributes:
        status: HTTP status; 0 for a connection that broke.
        headers: by lower-case name.
        body: all of it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def address(self) -> str:
        """The upstream that answered."""
        found = _REFLECTED.search(self.body)
        return found[1].decode() if found else ""

    @property
    def told(self) -> dict[str, Any]:
        """The JSON object that a mirror answers with."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Client:
    """Sends requests through the bed's Envoy."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed

    async def __aenter__(self) -> Self:
        """Open."""
        self._session = ClientSession(connector=TCPConnector(limit=0))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self._session.close()

    async def ask(
        self,
        key: str = "",
        body: bytes = b"{}",
        headers: Mapping[str, str] = NO_HEADERS,
        method: str = "POST",
        path: str = PATH,
    ) -> Answer:
        """One request; a broken connection is an answer of status 0."""
        keyed = {KEY_HEADER: key} if key else {}
        data = None if method == "GET" else body
        try:
            async with self._session.request(
                method, self._bed.url + path, data=data, headers={**headers, **keyed}
            ) as got:
                content = await got.read()
                return Answer(got.status, {name.lower(): value for name, value in got.headers.items()}, content)
        except ClientError as error:
            return Answer(0, {}, str(error).encode())

    async def stream(self, events: int, pause_seconds: float, key: str = "") -> Answer:
        """A server-sent stream, read to its end."""
        asked = {"x-mirror-events": str(events), "x-mirror-pause": str(pause_seconds)}
        return await self.ask(key, headers=asked)


class Load:
    """Requests without a pause, from several workers, until told to stop.

    Attributes:
        statuses: how many answers had which status; 0 for broken connections.
    """

    def __init__(self, client: Client, workers: int = 4) -> None:
        self.statuses: Counter[int] = Counter()
        self._client, self._workers = client, workers
        self._stopping = False

    async def __aenter__(self) -> Self:
        """Start."""
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._workers)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop after the requests that are open."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def answered(self, more: int) -> None:
        """Wait until so many further requests were answered."""
        wanted = self.statuses.total() + more
        while self.statuses.total() < wanted:
            await asyncio.sleep(0.01)

    async def _work(self) -> None:
        while not self._stopping:
            self.statuses[(await self._client.ask()).status] += 1


async def eventually(bed: Bed, check: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Wait until something holds, while the test's own requests go on."""
    await asyncio.to_thread(bed.until, check, what, seconds)
