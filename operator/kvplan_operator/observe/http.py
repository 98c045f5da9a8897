"""GET from pods: bounded in time, size and number at once.

Inputs: URLs of pods. Outputs: text, or ``Unreachable``. No redirects, no proxy, no credentials, no compression: pods
are addressed directly and nobody's answer may grow on arrival.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp

_CHUNK_BYTES = 64 * 1024


class Unreachable(Exception):
    """A pod that gave no usable answer; the message is for people."""


@dataclass(frozen=True)
class HttpLimits:
    """Bounds of one GET.

    Attributes:
        seconds: for all of it.
        max_bytes: of the body.
        concurrency: GETs at once.
    """

    seconds: float = 3.0
    max_bytes: int = 4 << 20
    concurrency: int = 64


class PodHttp:
    """A client for pods, made once and used by all fleets; an asynchronous context."""

    def __init__(self, limits: HttpLimits | None = None) -> None:
        self._limits = limits or HttpLimits()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the session; it belongs to the running loop."""
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._limits.seconds),
            connector=aiohttp.TCPConnector(limit=self._limits.concurrency),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()

    async def text(self, url: str) -> str:
        """The body of a 200.

        Raises:
            Unreachable: no such answer within the bounds.
        """
        if self._session is None:
            raise RuntimeError("open the client first: async with PodHttp() as http")
        try:
            async with self._session.get(url, allow_redirects=False) as response:
                if response.status != 200:
                    raise Unreachable(f"HTTP {response.status}")
                return (await self._body(response)).decode()
        except TimeoutError as error:
            raise Unreachable(f"no answer within {self._limits.seconds:g} s") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise Unreachable(f"no usable answer ({type(error).__name__})") from error

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            body += chunk
            if len(body) > self._limits.max_bytes:
                raise Unreachable(f"the answer is longer than {self._limits.max_bytes} bytes")
        return bytes(body)
