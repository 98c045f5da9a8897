"""A plan that serves worse than it promised gives way once, and never back and forth."""

from typing import Any

import pytest

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import ClassOutlook, Outlook, RoutingPlanStatus
from kvplan_operator.plan.choice import Standing, choose
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.rollback import ReturnState, return_of
from kvplan_operator.plan.standing import shelf_of
from kvplan_operator.status.routing_plan import PlanView, plan_status
from kvplan_operator.status.said import Progress
from tests.routing_plans import (
    INPUTS,
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

GOOD = served_until(plan_of((group(nodes=("a",)),)), NOW - 3_600)
OTHER_INPUTS = "2" * 64


def outlook(rate: int, latency: int, overflow: int = 10) -> Outlook:
    seen = ClassOutlook(
        name="chat", requests_per_second_milli=rate, mean_latency_milliseconds=latency, overflow_milli=overflow
    )
    return Outlook(classes=(seen,))


def current(latency: int = 800, rate: int = 4_000, overflow: int = 10, worse_for: float | None = None) -> RoutingPlan:
    """The plan in force: forecast 800 ms at 4 requests a second, 1 % beyond their reservation."""
    plan = in_force_since(plan_of((group("tp2", ("a",)),)), NOW - 3_600)
    since = () if worse_for is None else (failed(ConditionStatus.UNKNOWN, NOW - worse_for),)
    return marked(plan, *since, forecast=outlook(4_000, 800), observed=outlook(rate, latency, overflow))


def failed(status: ConditionStatus, since: float) -> Any:
    reason = ConditionReason.WORSE_THAN_FORECAST if status is ConditionStatus.UNKNOWN else ConditionReason.ROLLED_BACK
    return condition(ConditionType.FAILED, status, reason, since)


def given_up(hours: float, inputs: str = INPUTS) -> RoutingPlan:
    """A plan that gave way so long ago."""
    plan = served_until(plan_of((group("tp2", ("a", "b")),), inputs=inputs), NOW - hours * 3_600)
    return marked(plan, failed(ConditionStatus.TRUE, NOW - hours * 3_600))


WATCHED, DUE, HELD = ReturnState.WATCHED, ReturnState.DUE, ReturnState.HELD
CASES: dict[str, tuple[tuple[RoutingPlan, ...], dict[str, Any], ReturnState | None]] = {
    "service as forecast is left alone": ((current(), GOOD), {}, None),
    "a latency half again as long is still within the margin": ((current(latency=1_200), GOOD), {}, None),
    "a longer latency is watched first": ((current(latency=1_201), GOOD), {}, WATCHED),
    "it is watched for ten minutes": ((current(latency=1_300, worse_for=599), GOOD), {}, WATCHED),
    "after ten minutes the last good plan is due": ((current(latency=1_300, worse_for=600), GOOD), {}, DUE),
    "more preemptions than forecast count too": ((current(overflow=61, worse_for=600), GOOD), {}, DUE),
    "crashing groups count too": ((current(worse_for=600), GOOD), {"crashing": 2}, DUE),
    "more traffic than planned is no fault of the plan": (
        (current(latency=9_000, rate=4_500, worse_for=600), GOOD), {}, None),
    "service that recovered is left alone": ((current(worse_for=600), GOOD), {}, None),
    "without a good plan a person goes on": ((current(latency=1_300, worse_for=600),), {}, HELD),
    "after one return under the same inputs a person goes on": (
        (current(latency=1_300, worse_for=600), GOOD, given_up(48.0)), {}, HELD),
    "after one return nothing changes though service is good": ((current(), GOOD, given_up(48.0)), {}, HELD),
    "other inputs let the policy go on": ((current(), GOOD, given_up(48.0, OTHER_INPUTS)), {}, None),
    "other inputs do not shorten the hold-down": ((current(), GOOD, given_up(0.5, OTHER_INPUTS)), {}, HELD),
    "before the first plan there is nothing to return from": ((), {}, None),
}  # fmt: skip


@pytest.mark.parametrize("sentence", CASES)
def test_return(sentence: str) -> None:
    plans, given, state = CASES[sentence]
    shelf = shelf_of(fleet_with(plans[0] if plans else None), plans)
    found = return_of(shelf, INPUTS, NOW, **given)
    assert (found and found.state) == state
    if found is not None and state is DUE:
        assert found.digest == digest_of(GOOD)


def test_a_return_says_what_was_seen_and_where_it_leads() -> None:
    plans = (current(latency=1_300, worse_for=600), GOOD)
    found = return_of(shelf_of(fleet_with(plans[0]), plans), INPUTS, NOW)
    assert found is not None
    assert found.message == (
        "class chat takes 1300 ms instead of 800 ms on average since 2030-03-17T17:36:40Z; "
        f"RoutingPlan {GOOD.metadata.name} (digest {digest_of(GOOD)}) served well before"
    )
    assert found.worse == "class chat takes 1300 ms instead of 800 ms on average"


def test_a_return_that_was_interrupted_between_its_two_writes_goes_on() -> None:
    half = marked(current(), failed(ConditionStatus.TRUE, NOW - 5))
    found = return_of(shelf_of(fleet_with(half), (half, GOOD)), INPUTS, NOW)
    assert found is not None
    assert (found.state, found.digest) == (DUE, digest_of(GOOD))


def minute_of_bad_service(plans: dict[str, RoutingPlan], in_force: str, now: float) -> str:
    """One look while every plan in force serves at 1300 ms instead of 800; the plan in force after it."""
    fleet = fleet_with(plans[in_force], BAD)
    shelf = shelf_of(fleet, plans.values())
    returning = return_of(shelf, INPUTS, now)
    choice = choose(PolicyMode.AUTO, shelf, {d: Judged(plan, d, 100.0) for d, plan in plans.items()}, returning)
    after = choice.target or in_force
    for digest, plan in plans.items():
        leaves = digest == in_force != after
        look = PlanView(
            plan, now, problems=(), in_force=digest == after, progress=Progress(complete=True),
            replaced_by=plans[after].metadata.name, observed=outlook(4_000, 1_300),
            worse=returning.worse if returning and digest == in_force else "",
            given_up=choice.message if leaves and choice.standing is Standing.RETURNING else "",
        )  # fmt: skip
        plans[digest] = plan.model_copy(update={"status": RoutingPlanStatus.model_validate(plan_status(look))})
    return after


BAD = marked(current(), observed=outlook(4_000, 1_300))


def test_two_hours_of_bad_service_return_once_and_never_back() -> None:
    good, bad = digest_of(GOOD), digest_of(BAD)
    plans, in_force, told = {good: marked(GOOD, forecast=outlook(4_000, 800)), bad: BAD}, bad, []
    for minute in range(120):
        in_force = minute_of_bad_service(plans, in_force, NOW + 60 * minute)
        told.append(in_force)
    assert told == [bad] * 10 + [good] * 110
    found = return_of(shelf_of(fleet_with(plans[good], plans[bad]), plans.values()), INPUTS, NOW + 7_200)
    assert found is not None
    assert found.state is HELD
