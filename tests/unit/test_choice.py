"""Which plan is pursued: what people accepted, else what the policy picks, else the one in force."""

from typing import Any

import pytest

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.plan.choice import Choice, Standing, choose
from kvplan_operator.plan.judged import Judged, judge_plan
from kvplan_operator.plan.rollback import Return, ReturnState
from kvplan_operator.plan.standing import Shelf, shelf_of
from tests.planning import demo
from tests.routing_plans import (
    NOW,
    condition,
    digest_of,
    fleet_with,
    group,
    in_force_since,
    marked,
    plan_of,
    served_until,
)

OLD = in_force_since(plan_of((group(nodes=("a",)),)), NOW - 5_000)
NEW = plan_of((group("tp2", ("a",)),))
GONE = "f" * 64
BROKEN = ("Memory tp2: 110 of 100",)


def world(
    mode: str,
    *,
    current: bool = True,
    accepted: str | None = None,
    broken: tuple[Any, ...] = (),
    returning: Return | None = None,
) -> Choice:
    fleet = fleet_with(OLD if current else None, NEW, accepted, mode)
    plans = (OLD, NEW) if current else (NEW,)
    judged = {digest_of(plan): Judged(plan, digest_of(plan), 100.0, BROKEN if plan in broken else ()) for plan in plans}
    return choose(PolicyMode(mode), shelf_of(fleet, plans), judged, returning)


IN_FORCE, ACCEPTED, PROPOSED = Standing.IN_FORCE, Standing.ACCEPTED, Standing.PROPOSED
Reason = ConditionReason
DUE = Return(ReturnState.DUE, digest_of(NEW), "chat takes 900 ms")
HELD = Return(ReturnState.HELD, None, "given up before")
WATCHED = Return(ReturnState.WATCHED, digest_of(NEW), "chat takes 900 ms")

CASES: dict[str, tuple[dict[str, Any], Any, Any, Reason, bool]] = {
    "DryRun keeps what is in force": ({"mode": "DryRun"}, OLD, IN_FORCE, Reason.PROPOSED_ONLY, False),
    "DryRun has nothing before the first plan": (
        {"mode": "DryRun", "current": False}, None, None, Reason.PROPOSED_ONLY, False),
    "DryRun does not follow a digest": (
        {"mode": "DryRun", "accepted": digest_of(NEW)}, OLD, IN_FORCE, Reason.PROPOSED_ONLY, False),
    "Approve waits for a digest": ({"mode": "Approve"}, OLD, IN_FORCE, Reason.AWAITING_APPROVAL, False),
    "Approve follows the digest": (
        {"mode": "Approve", "accepted": digest_of(NEW)}, NEW, ACCEPTED, Reason.DIGEST_ACCEPTED, False),
    "Approve goes on with what it applied": (
        {"mode": "Approve", "accepted": digest_of(OLD)}, OLD, IN_FORCE, Reason.DIGEST_ACCEPTED, False),
    "a digest that no plan has is said, not followed": (
        {"mode": "Approve", "accepted": GONE}, OLD, IN_FORCE, Reason.UNKNOWN_DIGEST, True),
    "an accepted plan that no longer fits leaves the old one in force": (
        {"mode": "Approve", "accepted": digest_of(NEW), "broken": (NEW,)}, OLD, IN_FORCE, Reason.STALE_PLAN, True),
    "an accepted plan in force that no longer fits stays, and it is said": (
        {"mode": "Approve", "accepted": digest_of(OLD), "broken": (OLD,)}, OLD, IN_FORCE, Reason.STALE_PLAN, False),
    "Auto takes the candidate": ({"mode": "Auto"}, NEW, PROPOSED, Reason.POLICY_ACCEPTED, False),
    "Auto takes the first candidate": (
        {"mode": "Auto", "current": False}, NEW, PROPOSED, Reason.POLICY_ACCEPTED, False),
    "Auto leaves a candidate that no longer holds": (
        {"mode": "Auto", "broken": (NEW,)}, OLD, IN_FORCE, Reason.POLICY_ACCEPTED, False),
    "Auto is pinned by an accepted digest": (
        {"mode": "Auto", "accepted": digest_of(OLD)}, OLD, IN_FORCE, Reason.DIGEST_ACCEPTED, False),
    "Auto returns to the last good plan": (
        {"mode": "Auto", "returning": DUE}, NEW, Standing.RETURNING, Reason.ROLLED_BACK, False),
    "Auto does not return twice": (
        {"mode": "Auto", "returning": HELD}, OLD, IN_FORCE, Reason.ROLLED_BACK, True),
    "Auto goes on while bad service is only watched": (
        {"mode": "Auto", "returning": WATCHED}, NEW, PROPOSED, Reason.POLICY_ACCEPTED, False),
    "Approve says what to accept when service is bad": (
        {"mode": "Approve", "returning": DUE}, OLD, IN_FORCE, Reason.WORSE_THAN_FORECAST, True),
    "an accepted digest beats a return": (
        {"mode": "Auto", "accepted": digest_of(OLD), "returning": DUE}, OLD, IN_FORCE, Reason.DIGEST_ACCEPTED, False),
}  # fmt: skip


@pytest.mark.parametrize("sentence", CASES)
def test_choice(sentence: str) -> None:
    given, target, standing, reason, stalled = CASES[sentence]
    choice = world(**given)
    assert choice.target == (target and digest_of(target))
    assert (choice.standing, choice.reason, choice.stalled) == (standing, reason, stalled)
    assert choice.message


def test_an_unknown_digest_is_answered_with_the_plans_there_are() -> None:
    message = world("Approve", accepted=GONE).message
    names = ", ".join(sorted(plan.metadata.name for plan in (OLD, NEW)))
    assert message == f"no RoutingPlan has digest {GONE}: create it or accept another; there are {names}"


def test_a_proposal_says_what_to_write_where() -> None:
    assert f"write spec.acceptedPlan.digest {digest_of(NEW)}" in world("Approve").message


def shelf(*plans: Any, **fleet: Any) -> Shelf:
    return shelf_of(fleet_with(**fleet), plans)


def test_the_status_of_the_fleet_names_the_plan_in_force() -> None:
    assert shelf(OLD, NEW, current=NEW).current == digest_of(NEW)


def test_a_lost_status_is_rebuilt_from_the_plans() -> None:
    before = served_until(NEW, NOW - 5_000)
    waiting = marked(plan_of((group("tp2", ("b",)),)), condition(ConditionType.ACCEPTED, since=NOW))
    assert shelf(before, OLD, waiting).current == digest_of(OLD)


def test_a_deleted_plan_is_missed() -> None:
    found = shelf(NEW, current=OLD)
    assert found.current is None
    assert found.lost is not None
    assert found.lost.digest == digest_of(OLD)


def test_a_plan_under_a_name_that_is_not_its_own_does_not_count() -> None:
    forged = plan_of((group("tp2", ("b",)),), name="demo-0123456789")
    found = shelf(forged, current=forged, accepted=digest_of(forged))
    assert (found.current, dict(found.plans), found.misnamed) == (None, {}, (forged,))


def test_plans_of_other_fleets_and_namespaces_do_not_count() -> None:
    assert not shelf(plan_of(namespace="elsewhere")).plans


SAVINGS = {
    "a third less": (300.0, 200.0, 1 / 3),
    "the same": (300.0, 300.0, 0.0),
    "nothing at all": (0.0, 0.0, 0.0),
    "dearer than nothing": (0.0, 10.0, -1.0),
    "a queue that never empties": (float("inf"), 10.0, 1.0),
    "two queues that never empty": (float("inf"), float("inf"), 0.0),
    "into a queue that never empties": (10.0, float("inf"), -1.0),
}


@pytest.mark.parametrize("sentence", SAVINGS)
def test_saving(sentence: str) -> None:
    before, after, saving = SAVINGS[sentence]
    assert Judged(NEW, "", after).saving_over(Judged(OLD, "", before)) == pytest.approx(saving)


def test_a_planners_plan_holds_and_costs_what_it_says() -> None:
    found = judge_plan(demo())
    assert (found.problems, found.cost) == ((), demo().result.costs.total)
    assert found.digest == digest_of(demo().plan)


def test_condition_status_of_a_choice_without_a_plan_is_false() -> None:
    assert world("Auto", current=False, broken=(NEW,)).status is ConditionStatus.FALSE
