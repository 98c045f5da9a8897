"""The few calls of the API server that a node agent needs, in dictionaries.

Inputs: credentials. Outputs: objects, and changes of a list that is followed for ever. Every request has a timeout and
a watch is renewed before its own; whatever ends a watch, the list is read again, so no change is lost.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from e2e.agent.credentials import Credentials
from e2e.agent.errors import AgentError, Refused, Unreachable

Object = dict[str, Any]

STRATEGIC_MERGE = "application/strategic-merge-patch+json"
_JSON = "application/json"
_LARGEST_LINE_BYTES = 4 * 2**20  # a ConfigMap of 1 MiB in base64 is one line of a watch
_ANSWER = aiohttp.ClientTimeout(total=20)
_WATCH_SECONDS = 240
_WATCH = aiohttp.ClientTimeout(total=_WATCH_SECONDS + 20, sock_connect=10)
_RETRY_SECONDS = 0.5
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Change:
    """What happened to a followed list.

    Attributes:
        removed: whether the objects are gone.
        whole: whether the objects are all there are.
        objects: those that the change is about.
    """

    removed: bool
    whole: bool
    objects: list[Object]


class Api:
    """A client for one API server; to be closed."""

    def __init__(self, credentials: Credentials) -> None:
        self.server = credentials.server
        connector = aiohttp.TCPConnector(ssl=credentials.tls, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=credentials.headers, read_bufsize=_LARGEST_LINE_BYTES
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, **query: str) -> Object:
        """Read an object or a list.

        Raises:
            Refused: when the API server does not answer 2xx; so for the other calls.
            Unreachable: when it does not answer; so for the other calls.
        """
        return await self._call("GET", path, query=query)

    async def create(self, path: str, content: Object) -> Object:
        """Create an object."""
        return await self._call("POST", path, content)

    async def patch(self, path: str, content: Object) -> Object:
        """Merge content into an object, lists by their keys."""
        return await self._call("PATCH", path, content, STRATEGIC_MERGE)

    async def delete(self, path: str, options: Object) -> None:
        """Delete an object."""
        await self._call("DELETE", path, options)

    async def follow(self, path: str, **query: str) -> AsyncIterator[Change]:
        """Yield the whole list first, then every change; the whole list again whenever the watch broke."""
        while True:
            try:
                listed = await self.get(path, **query)
                yield Change(removed=False, whole=True, objects=listed["items"])
                async for change in self._watch(path, query, listed["metadata"]["resourceVersion"]):
                    yield change
            except AgentError as error:
                _LOG.info("following %s %s: %s", path, query, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _watch(self, path: str, query: Mapping[str, str], version: str) -> AsyncIterator[Change]:
        options = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": str(_WATCH_SECONDS)}
        async with self._request("GET", path, params=options, timeout=_WATCH) as response:
            async for line in response.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(f"watch {path}", event["object"].get("code", 500), event["object"]["message"])
                yield Change(removed=event["type"] == "DELETED", whole=False, objects=[event["object"]])

    async def _call(
        self,
        method: str,
        path: str,
        content: Object | None = None,
        content_type: str = _JSON,
        query: Mapping[str, str] | None = None,
    ) -> Object:
        body = None if content is None else json.dumps(content)
        options = {"params": query, "data": body, "headers": {"Content-Type": content_type}}
        async with self._request(method, path, timeout=_ANSWER, **options) as response:
            answer: Object = await response.json()
            return answer

    @asynccontextmanager
    async def _request(self, method: str, path: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(method, self.server + path, **options) as response:
                await _raise_for(response, f"{method} {path}")
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(f"{method} {path}: {error!r}") from error


async def _raise_for(response: aiohttp.ClientResponse, request: str) -> None:
    if response.status >= 300:
        text = await response.text()
        try:
            message = json.loads(text)["message"]
        except (ValueError, KeyError, TypeError):
            message = text
        raise Refused(request, response.status, message)
