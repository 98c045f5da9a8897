"""When to solve, what a solve becomes, and which plans may go."""

from typing import Any

import pytest

from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.instants import timestamp
from kvplan_operator.plan.hot_values import hot_values, with_hot_values
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.pending import outcome_of
from kvplan_operator.plan.retention import garbage
from kvplan_operator.plan.solve_due import LastSolve, Trigger, inventory_digest, solve_due
from kvplan_operator.plan.standing import shelf_of
from kvplan_solver.instance import GroupPlacement
from tests.planning import inventory
from tests.routing_plans import (
    NOW,
    class_plan,
    condition,
    digest_of,
    fleet_with,
    group,
    in_force_since,
    marked,
    plan_of,
    served_until,
)

DUE: dict[str, tuple[dict[str, Any], Trigger | None]] = {
    "nothing is due a minute after a solve": ({}, None),
    "the first look asks for a plan": ({"last": None}, Trigger.FIRST),
    "another spec asks at once": ({"inputs": "2"}, Trigger.SPEC_CHANGED),
    "other GPUs ask at once": ({"gpus": "2"}, Trigger.INVENTORY_CHANGED),
    "a plan that broke asks": ({"holds": False}, Trigger.CERTIFICATE_BROKEN),
    "a plan that just broke waits a moment": ({"holds": False, "age": 10.0}, None),
    "a solve that failed is tried again after a moment": ({"failed": True}, Trigger.SOLVE_FAILED),
    "a solve that just failed waits": ({"failed": True, "age": 10.0}, None),
    "the interval asks": ({"age": 300.0}, Trigger.INTERVAL),
    "a moment before the interval nothing does": ({"age": 299.0}, None),
    "a suspended fleet is not planned": ({"last": None, "suspend": True}, None),
}


@pytest.mark.parametrize("sentence", DUE)
def test_solve_due(sentence: str) -> None:
    given, trigger = DUE[sentence]
    last = given.get("last", LastSolve(NOW - given.get("age", 60.0), "1", "1", given.get("failed", False)))
    found = solve_due(
        fleet_with(suspend=given.get("suspend", False)), NOW, last, inputs_digest=given.get("inputs", "1"),
        inventory_digest=given.get("gpus", "1"), waiting_holds=given.get("holds", True),
    )  # fmt: skip
    assert found is trigger


def test_the_inventory_is_told_by_its_free_gpus_alone() -> None:
    running = inventory(4, 4, running=(GroupPlacement("tp1", ("a",)),))
    assert inventory_digest(inventory(4, 4)) == inventory_digest(running)
    assert inventory_digest(inventory(4, 4)) != inventory_digest(inventory(4, 3))
    assert inventory_digest(inventory(4, 4)) != inventory_digest(inventory(4, 4, product="H200"))


NOW_RUNNING = plan_of((group(nodes=("a", "b")),))
RETUNED = plan_of((group(nodes=("a", "b")),), (class_plan(tokens=640),))
WAITING = plan_of((group("tp2", ("a",)),))
FOUND = plan_of((group("tp2", ("b",)),))


def at(plan: RoutingPlan, cost: float, *problems: str) -> Judged:
    return Judged(plan, digest_of(plan), cost, problems)


BROKEN = "Memory tp2: 110 of 100"
OUTCOMES: dict[str, tuple[Judged, Judged | None, Judged | None, RoutingPlan | None, RoutingPlan | None]] = {
    "the first plan becomes the candidate": (at(FOUND, 90), None, None, FOUND, None),
    "a plan that breaks a constraint becomes nothing": (at(FOUND, 90, BROKEN), None, None, None, None),
    "a candidate stays when the new plan is hardly better": (
        at(FOUND, 96), at(WAITING, 100), at(NOW_RUNNING, 200), WAITING, None),
    "a candidate gives way to a clearly better plan": (
        at(FOUND, 94), at(WAITING, 100), at(NOW_RUNNING, 200), FOUND, None),
    "a candidate that broke gives way to any plan that holds": (
        at(FOUND, 120), at(WAITING, 100, BROKEN), at(NOW_RUNNING, 200), FOUND, None),
    "a candidate that broke goes even without another": (
        at(FOUND, 90, BROKEN), at(WAITING, 100, BROKEN), at(NOW_RUNNING, 200), None, None),
    "a candidate that saves nothing any more goes": (
        at(FOUND, 199), at(WAITING, 201), at(NOW_RUNNING, 200), None, None),
    "a plan that saves too little over what runs is not proposed": (
        at(FOUND, 191), None, at(NOW_RUNNING, 200), None, None),
    "a plan is proposed at any price when what runs broke": (
        at(FOUND, 500), None, at(NOW_RUNNING, 200, BROKEN), FOUND, None),
    "the same plan again becomes nothing": (at(NOW_RUNNING, 200), None, at(NOW_RUNNING, 200), None, None),
    "better routing of the same groups is taken over": (
        at(RETUNED, 150), None, at(NOW_RUNNING, 200), None, RETUNED),
    "hardly better routing is not": (at(RETUNED, 195), None, at(NOW_RUNNING, 200), None, None),
    "better routing leaves the candidate waiting": (
        at(RETUNED, 150), at(WAITING, 100), at(NOW_RUNNING, 200), WAITING, RETUNED),
}  # fmt: skip


@pytest.mark.parametrize("sentence", OUTCOMES)
def test_outcome(sentence: str) -> None:
    fresh, pending, current, candidate, retuned = OUTCOMES[sentence]
    found = outcome_of(fresh, pending, current, min_improvement=0.05)
    assert (found.candidate and found.candidate.plan) == candidate
    assert (found.retuned and found.retuned.plan) == retuned


def test_a_policy_that_changes_nothing_takes_over_no_routing() -> None:
    found = outcome_of(at(RETUNED, 150), None, at(NOW_RUNNING, 200), 0.05, may_retune=False)
    assert (found.candidate, found.retuned) == (None, None)


def test_hot_values_go_from_one_plan_into_another_of_the_same_groups() -> None:
    tuned = with_hot_values(NOW_RUNNING, hot_values(RETUNED))
    assert tuned.spec.classes == RETUNED.spec.classes
    assert (tuned.spec.groups, tuned.metadata.name) == (NOW_RUNNING.spec.groups, NOW_RUNNING.metadata.name)
    assert with_hot_values(NOW_RUNNING, ()) == NOW_RUNNING


def named(n: int, hours: float, **metadata: Any) -> RoutingPlan:
    """A plan of its own, so many hours old."""
    made = {"creationTimestamp": timestamp(NOW - hours * 3_600)}
    return plan_of((group(nodes=("a",) * n),), **(made | metadata))


def collected(*plans: RoutingPlan, limit: int = 1, **fleet: Any) -> set[int]:
    """Numbers of the plans that may go."""
    shelf = shelf_of(fleet_with(**fleet), plans)
    return {plan.spec.groups[0].replicas for plan in garbage(shelf, limit, NOW)}


by_people = condition(ConditionType.ACCEPTED, reason=ConditionReason.DIGEST_ACCEPTED)
by_policy = condition(ConditionType.ACCEPTED, reason=ConditionReason.POLICY_ACCEPTED)


def test_the_newest_plans_stay_and_older_ones_go() -> None:
    assert collected(*(named(n, 24 + n) for n in range(1, 6)), limit=2) == {3, 4, 5}


def test_plans_of_the_last_day_stay_however_many() -> None:
    assert collected(*(named(n, 23) for n in range(1, 6))) == set()


def test_a_plan_not_yet_created_is_young() -> None:
    assert collected(named(1, 30), plan_of((group(nodes=("b",)),)), plan_of((group(nodes=("b", "b")),))) == {1}


KEPT: dict[str, dict[str, Any]] = {
    "the plan in force": {"current": named(9, 99)},
    "the candidate": {"candidate": named(9, 99)},
    "the accepted plan": {"accepted": digest_of(named(9, 99))},
}


@pytest.mark.parametrize("sentence", KEPT)
def test_what_is_needed_stays(sentence: str) -> None:
    assert collected(named(9, 99), named(1, 30), named(2, 31), **KEPT[sentence]) == {2}


PRECIOUS = {
    "a plan that people wrote": named(9, 99, labels={"kvplan.dev/origin": "user"}),
    "a plan that people once accepted": marked(named(9, 99), by_people),
    "the plan to return to": served_until(named(9, 99), NOW - 7_200),
}


@pytest.mark.parametrize("sentence", PRECIOUS)
def test_what_may_be_wanted_again_stays(sentence: str) -> None:
    current = in_force_since(named(8, 98), NOW - 7_200)
    assert collected(PRECIOUS[sentence], current, named(1, 30), named(2, 31), current=current) == {2}


def test_what_the_policy_accepted_long_ago_goes() -> None:
    assert collected(marked(named(9, 99), by_policy), named(1, 30)) == {9}
