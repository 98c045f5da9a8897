"""What the API server says to the operator's own requests, word for word: refusals, causes and headers too.

Inputs: a kubeconfig. Outputs: replies, and watches as streams of events. Requests go out through the product's
`Transport`, with its credentials, TLS, timeouts and bodies; the product's `Client` is not used, because it turns into
errors, and tries again, what the suite pins.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from kubernetes.aio.client import ApiClient

from kvplan_operator.api.labels import FIELD_MANAGER as MANAGER
from kvplan_operator.kube.access import Access
from kvplan_operator.kube.request import APPLY, JSON, MERGE, Request
from kvplan_operator.kube.transport import Transport

__all__ = ["JSON_PATCH", "MERGE", "STRATEGIC", "Client", "Event", "Object", "Reply", "Watch"]

Object = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_WATCH_SECONDS = 60.0


@dataclass(frozen=True)
class Reply:
    """What the API server said.

    Attributes:
        code: of HTTP.
        body: an object, or the Status that tells why there is none.
        headers: of the answer.
    """

    code: int
    body: Object
    headers: dict[str, str]

    @property
    def reason(self) -> str:
        """The reason of a Status, one CamelCase word."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """The words of a Status."""
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> list[Object]:
        """The causes of a Status."""
        causes: list[Object] = self.body.get("details", {}).get("causes", [])
        return causes


class Client:
    """One user's connections to the API server.

    Attributes:
        library: the client library's own, to pin what it does.
    """

    def __init__(self, transport: Transport, library: ApiClient) -> None:
        self._transport, self.library = transport, library

    @classmethod
    async def connect(cls, kubeconfig: Path, token: str | None = None) -> Self:
        """Read a kubeconfig; nothing is asked of the server yet. A token replaces the user it names."""
        access = Access(kubeconfig)
        configuration = await access.load()
        if token is not None:
            configuration.cert_file = configuration.key_file = None
            configuration.api_key = {"BearerToken": f"Bearer {token}"}
        return cls(Transport(access, configuration), ApiClient(configuration))

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()
        await self.library.close()  # type: ignore[no-untyped-call]

    async def get(self, path: str, **query: str) -> Reply:
        """Read an object or a list."""
        return await self._ask("GET", path, None, JSON, query)

    async def create(self, path: str, body: Object, **query: str) -> Reply:
        """Create an object in a collection."""
        return await self._ask("POST", path, body, JSON, {"fieldManager": MANAGER, **query})

    async def replace(self, path: str, body: Object, **query: str) -> Reply:
        """Write a whole object."""
        return await self._ask("PUT", path, body, JSON, {"fieldManager": MANAGER, **query})

    async def patch(self, path: str, body: Object | list[Object], content: str, **query: str) -> Reply:
        """Write a part of an object; the content type says how it is merged."""
        return await self._ask("PATCH", path, body, content, {"fieldManager": MANAGER, **query})

    async def apply(self, path: str, body: Object, manager: str = MANAGER, **query: str) -> Reply:
        """Apply what a manager wants, on the server's side."""
        return await self._ask("PATCH", path, body, APPLY, {"fieldManager": manager, **query})

    async def delete(self, path: str, body: Object | None = None, **query: str) -> Reply:
        """Delete an object; the body holds preconditions and how far the deletion goes."""
        return await self._ask("DELETE", path, body or {}, JSON, query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator["Watch"]:
        """Follow a collection; refusals are told by the reply's code or by an ERROR event."""
        options = {"watch": "true", **query}
        request = Request("watch", "GET", path, options, answer_seconds=_WATCH_SECONDS, silence_seconds=_WATCH_SECONDS)
        response = await self._transport.send(request)
        try:
            yield Watch(response)
        finally:
            _hang_up(response)

    async def _ask(self, method: str, path: str, body: Any, content: str, query: dict[str, str]) -> Reply:
        async with await self._transport.send(Request(method, method, path, query, body, content)) as response:
            text = await response.text()
        in_json = response.content_type == JSON
        return Reply(response.status, json.loads(text) if in_json else {"message": text}, dict(response.headers))


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Leave a watch at once: a farewell in TLS would outlive the test's loop, and its socket with it."""
    transport = response.connection.transport if response.connection is not None else None
    if transport is not None:
        transport.abort()
    response.close()


@dataclass(frozen=True)
class Event:
    """One event of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: Object

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.object["metadata"].get("name", ""))

    @property
    def version(self) -> int:
        """Resource version of the object."""
        return int(self.object["metadata"]["resourceVersion"])


class Watch:
    """A running watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.code = response.status

    async def next(self) -> Event | None:
        """The next event; None when the server ended the watch."""
        line = await self._response.content.readline()
        if not line:
            return None
        event = json.loads(line)
        return Event(event["type"], event["object"])

    async def until(self, type_: str, name: str) -> Event:
        """The first event of a type about an object, after those before it; the test's deadline ends the wait."""
        while (event := await self.next()) is not None:
            if event.type == type_ and event.name == name:
                return event
        raise AssertionError(f"the watch ended before {name} was {type_}")
