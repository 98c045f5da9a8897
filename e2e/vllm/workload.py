"""Requests with known lengths, and an engine's own counts before and after.

Inputs: a server's URL, output lengths, reservations, how requests reach it. Outputs: counts. Every request ignores the
end of text and asks for exactly its length, so the truth is known.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp

from e2e.harness import pages

POOL = ("--num-gpu-blocks-override=32", "--max-model-len=512", "--max-num-seqs=8", "--shutdown-timeout=15")
"""A cache that must preempt if nobody reserves: eight sequences of up to 462 tokens have 992 between them."""
POOL_TOKENS = 31 * 32
PROMPT_TOKENS = 22
CLIENTS = 16
_SECONDS = 300.0


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
    return asyncio.run(_served(url, lengths, reservation_tokens, gateway or url))


async def _served(url: str, lengths: Sequence[int], reservation_tokens: int | None, gateway: str) -> Counts:
    limit = asyncio.Semaphore(CLIENTS)
    async with aiohttp.ClientSession(gateway, timeout=aiohttp.ClientTimeout(_SECONDS)) as session:
        before = await counts(session, url)
        await asyncio.gather(*(_ask(session, limit, n, length, reservation_tokens) for n, length in enumerate(lengths)))
        return (await counts(session, url)).since(before)


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
