"""The client library as the operator uses it: `kubernetes.aio` below, dictionaries above.

Inputs: a kubeconfig. Outputs: what the API server answered, refusals too, and watches as streams of events. Every
request has a timeout, a content type and, for writes, a field manager. Must not retry: the suite pins what is said.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import load_kube_config

Object = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGER = "kvplan"

_TIMEOUT_SECONDS = 20.0
_WATCH_TIMEOUT_SECONDS = 60.0


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
    """One user's connections to the API server."""

    def __init__(self, library: ApiClient) -> None:
        self.library = library

    @classmethod
    async def connect(cls, kubeconfig: Path, token: str | None = None) -> Self:
        """Read a kubeconfig; nothing is asked of the server yet. A token replaces the user it names."""
        access = Configuration()
        await load_kube_config(str(kubeconfig), client_configuration=access)  # type: ignore[no-untyped-call]
        if token is not None:
            access.cert_file = access.key_file = None
            access.api_key = {"BearerToken": f"Bearer {token}"}
        return cls(ApiClient(access))

    async def close(self) -> None:
        """Close all connections."""
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

    async def patch(self, path: str, body: Object | Sequence[Object], content: str, **query: str) -> Reply:
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
        response = await self._send("GET", path, None, JSON, {"watch": "true", **query}, _WATCH_TIMEOUT_SECONDS)
        try:
            yield Watch(response)
        finally:
            response.close()

    async def _ask(self, method: str, path: str, body: Any, content: str, query: dict[str, str]) -> Reply:
        response = await self._send(method, path, body, content, query, _TIMEOUT_SECONDS)
        text = (await response.read()).decode()
        in_json = response.content_type == JSON
        return Reply(response.status, json.loads(text) if in_json else {"message": text}, dict(response.headers))

    async def _send(
        self, method: str, path: str, body: Any, content: str, query: dict[str, str], seconds: float
    ) -> Any:
        headers = {"Content-Type": content, "Accept": JSON}
        url = f"{self.library.configuration.host}{path}?{urlencode(query)}"
        await self.library.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        answer = await self.library.call_api(method, url, headers, body, _request_timeout=seconds)
        return answer.response


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

    def __init__(self, response: Any) -> None:
        self._response = response
        self.code: int = response.status

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
