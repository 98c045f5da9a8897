"""Requests with known lengths, and an engine's own counts before and after.

Inputs: a server's URL, output lengths, reservations, how requests reach it. Outputs: counts. Every request ignores the
end of text and asks for exactly its length, so the truth is known. Without a gateway the engine has all requests before
it begins: what it batches does not depend on how fast clients are.
"""

import asyncio
import random
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from e2e.harness import pages

POOL = (
    "--num-gpu-blocks-override=32", "--max-model-len=512", "--max-num-seqs=8", "--shutdown-timeout=15",
    "--enable-server-load-tracking",
)  # fmt: skip
"""A cache that must preempt if nobody reserves: eight sequences of up to 462 tokens have 992 between them."""
POOL_TOKENS = 31 * 32
PROMPT_TOKENS = 22
CLIENTS = 16
_SECONDS = 300.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Counts:
    """What an engine has counted since it started."""

    preemptions: int
    steps: int

    def since(self, before: "Counts") -> "Counts":
        """What came after an earlier look."""
        return Counts(self.preemptions - before.preemptions, self.steps - before.steps)


def drawn_lengths(count: int, seed: int = 7) -> list[int]:
    """Lognormal output lengths: median 93 tokens, at most 440."""
    draw = random.Random(seed)  # noqa: S311 - lengths, not secrets
    return [min(440, max(1, int(draw.lognormvariate(4.53, 0.92)))) for _ in range(count)]


def served(url: str, lengths: Sequence[int], reservation_tokens: int | None, gateway: str | None = None) -> Counts:
    """Serve one request per length and return what the engine counted.

    Args:
        url: of the engine.
        lengths: tokens of each answer.
        reservation_tokens: stands in every request's id; None for none.
        gateway: URL that requests are sent to; None for the engine's own.

    Raises:
        AssertionError: a request failed or its answer has another length.
    """
    return asyncio.run(_served(url, lengths, reservation_tokens, gateway))


async def _served(url: str, lengths: Sequence[int], reservation_tokens: int | None, gateway: str | None) -> Counts:
    limit = asyncio.Semaphore(CLIENTS if gateway else len(lengths))
    timeout, unlimited = aiohttp.ClientTimeout(_SECONDS), aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(gateway or url, timeout=timeout, connector=unlimited) as session:
        before = await counts(session, url)
        asked = [_ask(session, limit, n, length, reservation_tokens) for n, length in enumerate(lengths)]
        if gateway:
            await asyncio.gather(*asked)
        else:
            await _all_at_once(session, asked)
        return (await counts(session, url)).since(before)


async def _all_at_once(session: aiohttp.ClientSession, asked: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Let the engine begin when it has every request."""
    await _tell(session, "/pause?mode=keep")
    async with asyncio.TaskGroup() as group:
        for each in asked:
            group.create_task(each)
        while await _load(session) < len(asked):
            await asyncio.sleep(_LOOK_SECONDS)
        await _tell(session, "/resume")


async def _tell(session: aiohttp.ClientSession, what: str) -> None:
    async with session.post(what) as answer:
        answer.raise_for_status()


async def _load(session: aiohttp.ClientSession) -> int:
    async with session.get("/load") as answer:
        return int((await answer.json())["server_load"])


async def counts(session: aiohttp.ClientSession, url: str) -> Counts:
    """The engine's counters now."""
    async with session.get(f"{url}/metrics") as answer:
        page = await answer.text()
    names = "vllm:num_preemptions_total", "vllm:iteration_tokens_total_count"
    return Counts(*(round(pages.total(page, name)) for name in names))


async def _ask(
    session: aiohttp.ClientSession, limit: asyncio.Semaphore, number: int, length: int, reservation_tokens: int | None
) -> None:
    suffix = "" if reservation_tokens is None else f"-kvr{reservation_tokens}"
    draw = random.Random(f"{number} {reservation_tokens}")  # noqa: S311 - a prompt that no other run has cached
    body = {
        "model": "tiny", "prompt": [draw.randrange(3, 500) for _ in range(PROMPT_TOKENS)],
        "max_tokens": length, "ignore_eos": True,
    }  # fmt: skip
    async with limit, session.post("/v1/completions", json=body, headers={"x-request-id": f"r{number}{suffix}"}) as got:
        answer = await got.json()
        assert got.status == 200, answer  # noqa: S101 - this is a test's own client
        assert answer["usage"]["completion_tokens"] == length  # noqa: S101
