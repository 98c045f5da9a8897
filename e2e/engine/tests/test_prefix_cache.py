"""The prefix cache: whole blocks, last token always computed, salts, eviction, and hit rates of a small fleet."""

import random
from array import array
from collections.abc import Callable

import pytest

from e2e.engine.tests.workloads import limits
from kvplan_engine.core.request import Request
from kvplan_engine.core.scheduler import Scheduler

ROOMY = {"blocks": 4096}


def _serve(scheduler: Scheduler, prompt: list[int], output_tokens: int = 1, salt: str = "") -> Request:
    request = Request("r", array("I", prompt), output_tokens, cache_salt=salt)
    scheduler.add(request)
    while not request.finished:
        scheduler.complete(scheduler.schedule())
    return request


@pytest.mark.parametrize(
    ("prompt_tokens", "shared_tokens", "hit_tokens"),
    [(220, 205, 192), (220, 31, 0), (220, 32, 32), (64, 64, 32), (65, 65, 64), (220, 220, 192)],
    ids=[
        "205 shared tokens are 6 whole blocks: 192, as measured on vLLM",
        "less than a block is nothing",
        "one whole block",
        "a fully cached prompt computes its last token, and so its last block",
        "one token more than whole blocks",
        "an equal prompt hits its whole blocks",
    ],
)
def test_hits_are_whole_blocks(prompt_tokens: int, shared_tokens: int, hit_tokens: int) -> None:
    scheduler = Scheduler(limits(**ROOMY))
    shared = list(range(1, shared_tokens + 1))
    _serve(scheduler, shared + [7] * (prompt_tokens - shared_tokens))
    later = _serve(scheduler, shared + [8] * (prompt_tokens - shared_tokens))
    assert later.cached_tokens == hit_tokens


def test_a_fresh_salt_per_request_hits_nothing() -> None:
    scheduler = Scheduler(limits(**ROOMY))
    served = [_serve(scheduler, [5] * 213, salt=f"salt-{number}") for number in range(4)]
    assert sum(len(request.prompt) for request in served) == 852
    assert sum(request.cached_tokens for request in served) == 0


def test_one_salt_for_all_shares_the_cache() -> None:
    scheduler = Scheduler(limits(**ROOMY))
    served = [_serve(scheduler, [5] * 213, salt="class-a") for _ in range(4)]
    assert [request.cached_tokens for request in served] == [0, 192, 192, 192]


def test_without_prefix_caching_nothing_hits() -> None:
    scheduler = Scheduler(limits(**ROOMY, prefix_caching=False))
    served = [_serve(scheduler, [5] * 213) for _ in range(3)]
    assert [request.cached_tokens for request in served] == [0, 0, 0]


def test_an_answer_is_cached_too_for_the_next_turn() -> None:
    scheduler = Scheduler(limits(**ROOMY))
    first = _serve(scheduler, [5] * 40, output_tokens=60)
    second = _serve(scheduler, list(first.tokens) + [9] * 10)
    assert second.cached_tokens == 96  # 99 of the 100 tokens were computed: three whole blocks


def test_the_least_recently_released_prefix_is_evicted_first() -> None:
    scheduler = Scheduler(limits(blocks=10))  # 9 usable: two prompts of 4 blocks, and one block spare
    old, new = [1] * 128, [2] * 128
    _serve(scheduler, old)
    _serve(scheduler, new)
    _serve(scheduler, [3] * 128)
    assert _serve(scheduler, new).cached_tokens > 0
    assert _serve(scheduler, old).cached_tokens == 0


def _hit_share(choose: Callable[[int, int], int]) -> float:
    """72 requests of 9 sessions on 3 servers: 205 shared tokens of 220, 16 answer tokens."""
    servers = [Scheduler(limits(**ROOMY)) for _ in range(3)]
    queried = hits = 0
    for number in range(72):
        session = number % 9
        prompt = [100 + session] * 205 + [1000 + number] * 15
        request = _serve(servers[choose(number, session)], prompt, output_tokens=16)
        queried, hits = queried + len(request.prompt), hits + request.cached_tokens
    return hits / queried


def test_affinity_beats_random_choice_by_what_was_measured_on_three_servers() -> None:
    draw = random.Random(1)
    affinity = _hit_share(lambda _, session: session % 3)
    at_random = _hit_share(lambda *_: draw.randrange(3))
    assert affinity == pytest.approx(0.761, abs=0.03)
    assert at_random == pytest.approx(0.551, abs=0.04)
