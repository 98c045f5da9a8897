"""The engines of the prefix benchmarks and one request to them, timed by its client.

In: requests of the trace. Out: :class:`Served`. The trace's time is made shorter and the engines as much faster, so
every figure is in the trace's seconds.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from e2e.router.bed import Bed
from e2e.router.parts import Layout
from e2e.router.tables import KEY_HEADER
from tests.bench.prefix_trace import TraceRequest

TIME_SCALE = 0.33
_BLOCK_TOKENS = 16
_ENGINE = (
    "--block-size", str(_BLOCK_TOKENS), "--max-model-len", "40000", "--max-num-seqs", "64",
    "--enable-prompt-tokens-details", "--stand-in-time-scale", str(TIME_SCALE),
)  # fmt: skip


@dataclass(frozen=True)
class Served:
    """One request as the client saw it: hit tokens of its prompt, the trace's seconds to the first and last byte."""

    asked: TraceRequest
    status: int
    hit_tokens: int
    first: float
    last: float


def engines(count: int, cache_tokens: int, edit: Callable[[dict[str, Any]], None]) -> Layout:
    """Stand-ins with so large a KV cache each, behind an Envoy that is edited so."""
    options = (*_ENGINE, "--num-gpu-blocks-override", str(cache_tokens // _BLOCK_TOKENS))
    return Layout(upstreams=count, engine=options, edit=edit)


async def served(bed: Bed, requests: Sequence[TraceRequest]) -> list[Served]:
    """Send each when it is due, counted from now; their answers in the order of the requests."""
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=600)) as session:
        began = time.monotonic()
        return await asyncio.gather(*(_ask(session, bed.url, began, request) for request in requests))


async def _ask(session: ClientSession, url: str, began: float, request: TraceRequest) -> Served:
    body = json.dumps({
        "model": "tiny", "prompt": request.prompt(), "max_tokens": request.output_tokens, "ignore_eos": True,
        "stream": True, "stream_options": {"include_usage": True},
    })  # fmt: skip
    headers = {KEY_HEADER: request.key, "content-type": "application/json"}
    await asyncio.sleep(began + request.at * TIME_SCALE - time.monotonic())
    asked = time.monotonic()
    async with session.post(f"{url}/v1/completions", data=body, headers=headers) as got:
        first, hit = 0.0, 0
        async for line in got.content:
            first = first or time.monotonic() - asked
            if b'"cached_tokens"' in line:
                hit = json.loads(line.removeprefix(b"data: "))["usage"]["prompt_tokens_details"]["cached_tokens"]
        return Served(request, got.status, hit, first / TIME_SCALE, (time.monotonic() - asked) / TIME_SCALE)
