"""Routers never reserve what an engine does not have."""

import pytest

from kvplan_operator.model.snapshot import EngineState, Fact, Quality
from kvplan_operator.route.capacities import within_capacities
from kvplan_operator.route.slots import PublishedSlot, SlotState
from tests.routing import Shelf
from tests.routing_plans import group, plan_of

PLAN = plan_of((group(kvCapacityTokens=64_000, budgetTokens=50_000),))
SLOT = PublishedSlot("tp1-0", "tp1", SlotState.SERVING, 50_000, pod_uid="one")


def heard(capacity: int | None) -> dict[str, Fact[EngineState]]:
    """What one engine says."""
    return {"one": Fact(EngineState(capacity, 0, 0), Quality.VALUE, "Pod one", 0.0)}


def budget(engines: dict[str, Fact[EngineState]], slot: PublishedSlot = SLOT) -> int:
    return within_capacities((slot,), Shelf().found(), PLAN, engines)[0].budget_tokens


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [(64_000, 50_000), (80_000, 50_000), (60_000, 46_000), (10_000, 0), (None, 50_000)],
    ids=["as planned", "more", "less", "less than what is pinned", "no cache yet"],
)
def test_an_engine_with_less_gets_a_smaller_budget_and_one_with_more_no_larger_one(
    capacity: int | None, expected: int
) -> None:
    assert budget(heard(capacity)) == expected


def test_an_engine_nobody_heard_of_is_taken_at_the_plans_word() -> None:
    assert budget({}) == 50_000
    assert budget({"one": Fact(None, Quality.NO_DATA, "Pod one", 0.0, "does not answer")}) == 50_000


def test_groups_that_a_new_plan_leaves_out_keep_what_they_have() -> None:
    other = PublishedSlot("tp8-0", "tp8", SlotState.DRAINING, 7_000, pod_uid="one")
    assert budget(heard(60_000), other) == 7_000


def test_without_a_plan_nothing_changes() -> None:
    assert within_capacities((SLOT,), Shelf().found(), None, heard(1)) == (SLOT,)
