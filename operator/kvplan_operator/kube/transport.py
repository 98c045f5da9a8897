"""Requests over the client library's credentials and TLS: each with a timeout, each refusal an error of ours.

Inputs: a ``Request``. Outputs: the answer's JSON, or its lines. Must not retry (``client`` does), must not follow
redirects, and never uses a proxy that an environment variable names.

The connections are a session of our own: the library's would warn of bodies above 1 MiB, and cannot ask the fence
between connecting and writing.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
from aiohttp.http import HttpProcessingError
from kubernetes.aio.client import Configuration
from yarl import URL

from kvplan_operator.kube.access import Access, authorization
from kvplan_operator.kube.body import Body
from kvplan_operator.kube.errors import KubeError, LeadershipLost, Refused, Unavailable, refusal
from kvplan_operator.kube.fence import Fence
from kvplan_operator.kube.request import CONNECT_SECONDS, JSON, Request

_CONNECTIONS = 64
"""Watches included: a dozen of them, the rest for requests."""
_LONGEST_LINE_BYTES = 4 * 2**20
"""A full ConfigMap in base64 is one line of a watch, 1.4 MiB long; aiohttp takes lines of twice the number here."""
_UNAUTHORIZED = 401


class Transport:
    """Connections to one API server as one user; to be closed."""

    def __init__(self, access: Access, configuration: Configuration) -> None:
        self._access, self._configuration = access, configuration
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._access.tls(configuration), limit=_CONNECTIONS),
            trust_env=False,
            read_bufsize=_LONGEST_LINE_BYTES,
            headers={"Accept": JSON, "User-Agent": "kvplan"},
        )

    @classmethod
    async def open(cls, access: Access) -> "Transport":
        """Read credentials; nothing is asked of the API server yet.

        Raises:
            Refused: when there are none.
        """
        return cls(access, await access.load())

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def ask(self, request: Request, fence: Fence | None = None) -> Any:
        """The answer to a request.

        Raises:
            KubeError: for every other outcome.
            LeadershipLost: when the fence does not hold; nothing was sent then.
        """
        with _errors_of(request):
            async with await self._succeed(request, fence) as answer:
                text = await answer.read()
        try:
            return json.loads(text)
        except ValueError as error:
            raise Unavailable(f"{request.what}: the answer is no JSON", code=answer.status) from error

    @asynccontextmanager
    async def follow(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """A block with the lines of an answer that goes on; errors as for ``ask``."""
        with _errors_of(request):
            answer = await self._succeed(request, None)
        try:
            yield _lines(request, answer.content)
        finally:
            answer.close()

    async def send(self, request: Request, fence: Fence | None = None) -> aiohttp.ClientResponse:
        """Whatever the API server answers, refusals too; the caller closes it.

        Raises:
            LeadershipLost: when the fence does not hold; so for the other calls.
            aiohttp.ClientError, OSError: when there is no answer.
        """
        body = None if request.document is None else Body(request.document, request.content_type, fence)
        headers = await authorization(self._configuration)
        if request.writes and fence is not None:
            fence.check()
        return await self._session.request(
            request.method,
            URL(f"{self._configuration.host}{request.target}", encoded=True),
            data=body,
            headers=headers,
            timeout=_timeout(request),
            allow_redirects=False,
            server_hostname=self._configuration.tls_server_name,
            proxy=self._configuration.proxy,
        )

    async def _succeed(self, request: Request, fence: Fence | None) -> aiohttp.ClientResponse:
        """The answer of a success; credentials that were refused are read again once."""
        response = await self.send(request, fence)
        if response.status == _UNAUTHORIZED:
            response.close()
            self._configuration = await self._access.load()
            response = await self.send(request, fence)
        if response.status < 300:
            return response
        async with response:
            raise await _refusal(request, response)


async def _lines(request: Request, content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    with _errors_of(request):
        try:
            async for line in content:
                yield line
        except HttpProcessingError as error:
            raise Unavailable(f"{request.what}: a line is longer than any object: {error}") from error


@contextmanager
def _errors_of(request: Request) -> Iterator[None]:
    """Turn what a broken connection raises into the error of ours that it stands for."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error.__cause__, LeadershipLost):
            raise error.__cause__ from error
        raise Unavailable(f"{request.what}: {error!r}") from error


async def _refusal(request: Request, response: aiohttp.ClientResponse) -> KubeError:
    text = (await response.read()).decode(errors="replace")
    if response.status < 400:
        return Refused(f"{request.what}: redirected, which an API server does not do", code=response.status)
    return refusal(request.what, response.status, _status(text), response.headers.get("Retry-After"), request.uid)


def _status(text: str) -> dict[str, Any]:
    try:
        status = json.loads(text)
    except ValueError:
        return {"message": text}
    return status if isinstance(status, dict) else {"message": text}


def _timeout(request: Request) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=request.answer_seconds,
        sock_connect=CONNECT_SECONDS,
        sock_read=request.silence_seconds,
    )
