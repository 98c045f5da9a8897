"""Queueing, limits, preemption, reservations and aborts, as the metrics of a served engine show them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from e2e.engine.tests.serving import FAST, SMALL, Client, engine

SLOW = ("--stand-in-time-scale", "1", "--stand-in-step-milliseconds", "60000")
"""A first step of a minute: what was sent stays where it is."""
STEADY = ("--stand-in-time-scale", "1", "--stand-in-step-milliseconds", "50")
"""Steps long enough to look between them; 100 tokens take 5 s."""
ONE_AT_A_TIME = ("--max-num-seqs", "1")


async def _read_through(client: Client, fields: dict[str, Any], headers: dict[str, str]) -> None:
    async with client.session.post("/v1/completions", json=fields, headers=headers) as answer:
        await answer.read()


@asynccontextmanager
async def _held(client: Client, count: int, **body: Any) -> AsyncIterator[None]:
    """``count`` requests in flight."""
    headers = body.pop("headers", {})
    fields = {"prompt": [1] * 22, "max_tokens": 100, "ignore_eos": True, **body}
    tasks = [asyncio.create_task(_read_through(client, fields, headers)) for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _run(scenario: Callable[[Client], Awaitable[None]], *flags: str) -> None:
    async def with_engine() -> None:
        async with engine(*flags) as client:
            await scenario(client)

    asyncio.run(with_engine())


def test_24_requests_on_8_sequences_are_8_running_and_16_waiting() -> None:
    async def scenario(client: Client) -> None:
        async with _held(client, 24):
            await client.until(num_requests_running=8, num_requests_waiting=16)
        await client.until(num_requests_running=0, num_requests_waiting=0)

    _run(scenario, *SMALL, *STEADY)


@pytest.mark.parametrize(
    ("flags", "in_flight", "reason"),
    [
        (("--max-num-queued-reqs", "3"), 3, "max_num_queued_reqs"),
        (("--max-num-queued-tokens", "50"), 2, "max_num_queued_tokens"),
    ],
)
def test_over_a_queue_limit_a_request_is_refused_with_503_and_counted(
    flags: tuple[str, ...], in_flight: int, reason: str
) -> None:
    async def scenario(client: Client) -> None:
        async with _held(client, in_flight):
            await client.until(num_requests_running=1, num_requests_waiting=in_flight - 1)
            answer = await client.complete(503, prompt=[1] * 22, max_tokens=5)
            assert reason in answer["error"]["message"]
            await client.until(**{f'admission_rejections_total{{reason="{reason}"}}': 1})

    _run(scenario, *SMALL, *SLOW, *ONE_AT_A_TIME, *flags)


def test_a_client_that_leaves_frees_its_blocks_and_counts_as_abort() -> None:
    async def scenario(client: Client) -> None:
        async with _held(client, 2, stream=True):
            await client.until(num_requests_running=1, num_requests_waiting=1)
        await client.until(
            num_requests_running=0,
            num_requests_waiting=0,
            kv_cache_usage_perc=0,
            **{'request_success_total{finished_reason="abort"}': 2},
        )

    _run(scenario, *SMALL, *SLOW, *ONE_AT_A_TIME)


async def _eight_of_400(client: Client) -> dict[str, float]:
    requests = [client.complete(prompt=[n + 1] * 22, max_tokens=400, ignore_eos=True) for n in range(8)]
    await asyncio.gather(*requests)
    return await client.metrics()


def test_eight_requests_of_400_tokens_preempt_and_the_lost_work_stays_invisible() -> None:
    async def scenario(client: Client) -> None:
        seen = await _eight_of_400(client)
        assert 6 <= seen["vllm:num_preemptions_total"] <= 16  # arrivals are spread over some steps
        assert seen["vllm:request_num_preemptions_sum"] == seen["vllm:num_preemptions_total"]
        assert seen["vllm:prompt_tokens_total"] == 176
        assert seen["vllm:prefix_cache_queries_total"] == 176
        assert seen["vllm:generation_tokens_total"] == 3200
        assert seen["vllm:iteration_tokens_total_sum"] == 3376
        assert seen["vllm:request_prefill_kv_computed_tokens_sum"] == 176
        assert seen['vllm:request_success_total{finished_reason="length"}'] == 8

    _run(scenario, *SMALL, *FAST)


@pytest.mark.parametrize(
    ("flags", "running"), [((), 4), (("--scheduler-cls", "kvplan_vllm.Any"), 2)], ids=["stock", "with the plugin"]
)
def test_a_reservation_on_the_request_id_binds_with_the_plugin_alone(flags: tuple[str, ...], running: int) -> None:
    async def scenario(client: Client) -> None:
        headers = {"x-request-id": "r-kvr422"}
        async with _held(client, 4, headers=headers):
            await client.until(num_requests_running=running, num_requests_waiting=4 - running)

    _run(scenario, *SMALL, *STEADY, *flags)


async def _hits(client: Client, prompts: list[list[int]], salts: list[str | None]) -> tuple[float, float]:
    for prompt, salt in zip(prompts, salts, strict=True):
        await client.complete(prompt=prompt, max_tokens=2, ignore_eos=True, cache_salt=salt)
    seen = await client.metrics()
    assert seen["vllm:prompt_tokens_cached_total"] == seen["vllm:prefix_cache_hits_total"]
    assert seen['vllm:prompt_tokens_by_source_total{source="local_cache_hit"}'] == seen["vllm:prefix_cache_hits_total"]
    return seen["vllm:prefix_cache_queries_total"], seen["vllm:prefix_cache_hits_total"]


@pytest.mark.parametrize(
    ("prompts", "salts", "expected"),
    [
        ([[5] * 205 + [1] * 15, [5] * 205 + [2] * 15], [None, None], (440, 192)),
        ([[5] * 213] * 4, ["a", "b", "c", "d"], (852, 0)),
        ([[5] * 213] * 4, ["a"] * 4, (852, 3 * 192)),
    ],
    ids=["a shared head of 205 tokens", "a fresh salt each", "one salt for all"],
)
def test_prefix_cache_counters_are_in_tokens(
    prompts: list[list[int]], salts: list[str | None], expected: tuple[float, float]
) -> None:
    async def scenario(client: Client) -> None:
        assert await _hits(client, prompts, salts) == expected

    _run(scenario, "--block-size", "32", *FAST)
