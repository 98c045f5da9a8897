"""R̃ and Q in whole blocks."""

import pytest

from kvplan_solver.budget import ceil_to_block, effective_reservation_tokens, floor_to_block, group_budget_tokens
from kvplan_solver.errors import InvalidInput


@pytest.mark.parametrize(
    ("tokens", "block", "up", "down"),
    [(0, 16, 0, 0), (1, 16, 16, 0), (16, 16, 16, 16), (17, 16, 32, 16), (16.5, 16, 32, 16), (7, 1, 7, 7)],
)
def test_tokens_round_to_whole_blocks(tokens: float, block: int, up: int, down: int) -> None:
    assert (ceil_to_block(tokens, block), floor_to_block(tokens, block)) == (up, down)


@pytest.mark.parametrize(
    ("reservation", "prefix", "cached", "expected"),
    [(100, 40, False, 112), (100, 40, True, 80), (96, 32, True, 64), (96, 15, True, 96)],
)
def test_a_cached_prefix_saves_its_whole_blocks(reservation: int, prefix: int, cached: bool, expected: int) -> None:
    assert effective_reservation_tokens(reservation, prefix, cached, 16) == expected


@pytest.mark.parametrize(
    ("capacity", "prefixes", "expected"),
    [(1200, [], 1200), (1000, [100, 20], 888), (10, [64], 0)],
)
def test_the_budget_is_what_pinned_prefixes_leave(capacity: int, prefixes: list[int], expected: int) -> None:
    assert group_budget_tokens(capacity, prefixes, 16) == expected


def test_a_block_of_no_tokens_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        group_budget_tokens(100, [], 0)
    assert caught.value.field == "block_tokens"
