"""Objects of one kind in the cluster: what they are now, and every change, for as long as it takes.

In: one of the client library's list calls. Out: :class:`Listed` once per list, :class:`Changed` per change. A closed,
silent or refused watch is opened again; a version that is too old (410) leads to a new list. Level-based: a new list
says all there is.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientResponse
from kubernetes.aio.client.exceptions import ApiException

log = logging.getLogger(__name__)

Object = dict[str, Any]
ListCall = Callable[..., Awaitable[ClientResponse]]

WATCH_SECONDS = 60
"""A watch is opened anew after this long, so that a connection that died in silence is noticed."""
_ANSWER_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 10.0
_GONE = 410


@dataclass(frozen=True)
class Listed:
    """All objects there are."""

    objects: list[Object]


@dataclass(frozen=True)
class Changed:
    """One object that was added or modified, or that is gone."""

    object: Object
    deleted: bool


class _TooOld(Exception):
    """The server no longer knows the version that a watch was to start from."""


async def follow(call: ListCall, **selection: Any) -> AsyncIterator[Listed | Changed]:
    """Follow what a list call selects.

    Args:
        call: a ``list_…_without_preload_content`` of the client.
        selection: its arguments, such as ``namespace`` and ``field_selector``.
    """
    failures = 0
    while True:
        try:
            async for news in _list_and_watch(call, selection):
                failures = 0
                yield news
        except _TooOld:
            continue
        except (ApiException, ClientError, TimeoutError, OSError, ValueError) as error:
            failures += 1
            log.warning("the cluster's API does not answer, what is known stays in force: %s", _told(error))
            await asyncio.sleep(_pause(failures))


async def _list_and_watch(call: ListCall, selection: dict[str, Any]) -> AsyncIterator[Listed | Changed]:
    response = await call(**selection, _request_timeout=_ANSWER_SECONDS)
    listed = json.loads(await _body(response))
    yield Listed(listed["items"])
    version = listed["metadata"]["resourceVersion"]
    while True:
        async for event in _watch(call, selection, version):
            version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                yield Changed(event["object"], event["type"] == "DELETED")


async def _watch(call: ListCall, selection: dict[str, Any], version: str) -> AsyncIterator[Object]:
    response = await call(
        **selection, watch=True, resource_version=version, allow_watch_bookmarks=True, timeout_seconds=WATCH_SECONDS,
        _request_timeout=WATCH_SECONDS + _ANSWER_SECONDS,
    )  # fmt: skip
    try:
        _check(response.status, response.reason or "")
        async for line in _lines(response):
            event = json.loads(line)
            if event["type"] == "ERROR":
                _check(event["object"].get("code", 500), event["object"].get("message", ""))
            yield event
    finally:
        response.close()


async def _body(response: ClientResponse) -> bytes:
    _check(response.status, response.reason or "")
    return await response.read()


def _check(status: int, message: str) -> None:
    if status == _GONE:
        raise _TooOld
    if status >= 400:
        raise ApiException(status=status, reason=message)


async def _lines(response: ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length: an event holds a whole ConfigMap, more than the library's reader takes as one line."""
    rest = b""
    async for piece in response.content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line


def _pause(failures: int) -> float:
    """Seconds before the next try: exponential, with full jitter."""
    return random.uniform(0.1, min(_LONGEST_PAUSE_SECONDS, 0.25 * 2.0**failures))  # noqa: S311 - only spreads the load


def _told(error: Exception) -> str:
    return f"{error.status} {error.reason}" if isinstance(error, ApiException) else f"{type(error).__name__}: {error}"
