"""What an engine says of itself: whether it is healthy, and how many requests it runs.

In: an HTTP session and addresses. Out: readiness by probing ``/health``; requests held, from ``/metrics``. An engine
that does not answer holds an unknown number of requests. Source: 06-vllm §4 and §5.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable

from aiohttp import ClientError, ClientSession, ClientTimeout

SILENCES_MAX = 5
"""Probes without an answer after which an engine is taken for dead."""

_PROBE = ClientTimeout(total=1.0)
_GAUGES = ClientTimeout(total=3.0)
_RUNNING = re.compile(rb"^vllm:num_requests_(?:running|waiting)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)
_PAGE_BYTES_MAX = 4 * 1024 * 1024


class Engines:
    """Asks engines by ``ip:port``."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._silences: Counter[str] = Counter()

    async def healthy(self, addresses: Iterable[str]) -> frozenset[str]:
        """Those whose ``/health`` answers 200. A busy engine may be silent for a while: that alone does not count."""
        asked = sorted(set(addresses))
        answers = await asyncio.gather(*map(self._is_healthy, asked))
        return frozenset(address for address, answer in zip(asked, answers, strict=True) if answer)

    async def requests_held(self, addresses: Iterable[str]) -> dict[str, int]:
        """Requests running and queued in each engine that answers within three seconds."""
        asked = sorted(set(addresses))
        answers = await asyncio.gather(*map(self._requests, asked))
        return {address: answer for address, answer in zip(asked, answers, strict=True) if answer is not None}

    async def _is_healthy(self, address: str) -> bool:
        try:
            async with self._session.get(f"http://{address}/health", timeout=_PROBE) as response:
                self._silences[address] = 0 if response.status == 200 else SILENCES_MAX
        except TimeoutError:
            self._silences[address] += 1
        except (ClientError, OSError):  # nobody listens there
            self._silences[address] = SILENCES_MAX
        return self._silences[address] < SILENCES_MAX

    async def _requests(self, address: str) -> int | None:
        try:
            async with self._session.get(f"http://{address}/metrics", timeout=_GAUGES) as response:
                page = await response.content.read(_PAGE_BYTES_MAX)
        except (ClientError, TimeoutError, OSError):
            return None
        return requests_in(page)


def requests_in(page: bytes) -> int | None:
    """Requests that a metrics page counts as running or waiting, over all of the server's engines; None: none named."""
    values = [float(found[1]) for found in _RUNNING.finditer(page)]
    return round(sum(values)) if values else None
