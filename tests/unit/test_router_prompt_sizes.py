"""A request reserves what its own prompt needs, where its bytes tell it."""

from collections.abc import Mapping
from typing import Any

import pytest

from kvplan_router.core.decide import Router
from kvplan_router.core.ledger import reserve
from kvplan_router.core.prompt_sizes import ENOUGH, REMEMBERED, PromptSizes
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Request, Usage, Wait
from tests.unit.router_world import document, picked, request, request_class, router, slot, table

PLANNED = 100
"""R̃ of every class here: 80 tokens of prompt and 20 of answer."""


def world(**fields: Any) -> dict[str, Any]:
    """One slot, and a class that plans for prompts of 80 tokens of which 16 are cached."""
    policy: dict[str, Any] = {"reservedPromptTokens": 80, "cachedPrefixTokens": 16} | fields
    return document(classes=[request_class(**policy)], slots=[slot("a-0", budgetTokens=200)])


def learned(made: Router, size: int = 400, prompt: int = 40, answers: int = ENOUGH) -> None:
    """Let a router see answers to requests of one size."""
    for _ in range(answers):
        made.finish(picked(made.decide(sized(size))).ticket, Usage(prompt, 5))


def sized(size: int) -> Request:
    """A request of so many bytes."""
    return request("t", content_length=str(size))


def reserved(made: Router, asked: Request) -> int:
    """What a request reserves."""
    return picked(made.decide(asked)).ticket.tokens


def test_a_short_prompt_reserves_less_in_whole_blocks() -> None:
    made = router(world())
    learned(made)
    assert reserved(made, sized(400)) == PLANNED - 32, "40 of 80 tokens to spare, two blocks of 16"
    assert reserved(made, sized(300)) == PLANNED - 48, "30 tokens of prompt, by the same tokens per byte"


def test_a_block_of_another_size_is_that_of_the_index() -> None:
    made = router(world() | {"blockTokens": 40})
    learned(made)
    assert reserved(made, sized(400)) == PLANNED - 40


def test_a_long_prompt_reserves_what_is_planned_and_never_more() -> None:
    made = router(world())
    learned(made, size=400, prompt=100)
    assert reserved(made, sized(400)) == PLANNED
    assert reserved(made, sized(500)) == PLANNED


def test_a_cached_prefix_spares_nothing_twice() -> None:
    made = router(world(cachedPrefixTokens=64))
    learned(made, size=400, prompt=10)
    assert reserved(made, sized(400)) == PLANNED - 16, (
        "R̃ leaves the prefix out already: 16 of 80 tokens remain to spare"
    )


def test_no_request_is_free_of_charge_though_plan_and_prompt_do_not_fit_together() -> None:
    made = router(world(reservedPromptTokens=200, cachedPrefixTokens=0))
    learned(made, size=400, prompt=1)
    assert reserved(made, sized(400)) == 32, "400 bytes are 25 tokens at least, two blocks"


@pytest.mark.parametrize("answers", [0, ENOUGH - 1])
def test_until_enough_answers_were_seen_the_plan_is_followed(answers: int) -> None:
    made = router(world())
    learned(made, answers=answers)
    assert reserved(made, sized(400)) == PLANNED


def test_sizes_that_nobody_saw_are_not_guessed() -> None:
    made = router(world())
    learned(made, size=400)
    assert reserved(made, sized(5_000)) == PLANNED


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content_length": ""},
        {"content_length": "-400"},
        {"content_length": "4e2"},
        {"content_length": "٤٠٠"},
        {"content_length": "4" * 5_000},
        {"content_length": "400", "content_encoding": "gzip"},
    ],
    ids=lambda headers: str(headers)[:40],
)
def test_a_length_that_says_nothing_changes_nothing(headers: Mapping[str, str]) -> None:
    made = router(world())
    learned(made)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    assert reserved(made, Request(named, 0.0)) == PLANNED


def test_a_body_that_was_seen_is_as_good_as_a_length() -> None:
    made = router(world())
    learned(made)
    assert reserved(made, request("t", body=b"x" * 400)) == PLANNED - 32


def test_an_index_that_does_not_tell_the_prompt_is_followed_as_it_stands() -> None:
    made = router(world(reservedPromptTokens=0))
    learned(made)
    assert reserved(made, sized(400)) == PLANNED


def test_what_was_reserved_is_given_back_though_more_was_learned_since() -> None:
    made = router(world())
    ticket = picked(made.decide(sized(400))).ticket
    learned(made)
    made.finish(ticket)
    assert made.state().reserved == {"a-0": 0}


def test_who_waits_takes_what_it_needs_by_then() -> None:
    made = router(world(queue={"maxLength": 5, "deadlineMilliseconds": 2_000}))
    open_ones = [picked(made.decide(sized(400))).ticket for _ in range(2)]
    waiting = made.decide(sized(400))
    assert isinstance(waiting, Wait), "two of 100 fill the budget of 200"
    made.finish(open_ones[0], Usage(40, 5))
    (released,) = made.release(1.0)
    assert picked(released.decision).ticket.tokens == PLANNED
    learned_later = made.decide(sized(400))
    assert isinstance(learned_later, Wait)
    for _ in range(ENOUGH):
        made.finish(reserve(SlotAccount(""), 0, "chat", 0.0, 400), Usage(40, 5))
    made.finish(open_ones[1], Usage(40, 5))
    (released,) = made.release(1.5)
    assert picked(released.decision).ticket.tokens == PLANNED - 32


def test_what_a_class_learned_outlives_a_table() -> None:
    made = router(world())
    learned(made)
    made.install(*table(world() | {"generation": 2}))
    assert reserved(made, sized(400)) == PLANNED - 32


def test_the_largest_of_the_last_ones_counts() -> None:
    sizes = PromptSizes()
    sizes.learn(1_000, 900)
    for _ in range(REMEMBERED - 1):
        sizes.learn(1_000, 200)
    assert sizes.tokens(1_000) == 900
    sizes.learn(1_000, 200)
    assert sizes.tokens(1_000) == 200, "the long one is forgotten after 64"


def test_each_octave_of_sizes_is_learned_alone() -> None:
    sizes = PromptSizes()
    for _ in range(ENOUGH):
        sizes.learn(100, 80)
        sizes.learn(10_000, 2_500)
    assert (sizes.tokens(100), sizes.tokens(9_000), sizes.tokens(1_000)) == (80, 2_250, None)


def test_nothing_is_learned_from_a_size_that_is_not_known() -> None:
    sizes = PromptSizes()
    for _ in range(ENOUGH):
        sizes.learn(0, 80)
    assert sizes.tokens(0) is None
