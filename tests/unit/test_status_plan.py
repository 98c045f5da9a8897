"""RoutingPlan.status: the life of a plan, told by its conditions."""

from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import ClassOutlook, Outlook, RoutingPlanStatus
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.plan.hot_values import hot_values
from kvplan_operator.plan.standing import shelf_of, was_accepted_by_people
from kvplan_operator.status.routing_plan import PlanView, found_by, plan_status
from kvplan_operator.status.said import Progress
from tests.planning import demo
from tests.routing_plans import NOW, digest_of, fleet_with, plan_of

DONE, MOVING = Progress(3, 3, complete=True), Progress(1, 3, "slot tp1-0 to drain")
LATE = Refusal(ConditionType.ROLLOUT_COMPLETE, ConditionReason.DEADLINE_EXCEEDED, "step 1 takes 3 h", stalled=True)
STUCK = Progress(1, 3, refusal=LATE)


def stored(view: PlanView) -> RoutingPlan:
    """The plan with the status of this look written."""
    return view.plan.model_copy(update={"status": RoutingPlanStatus.model_validate(plan_status(view))})


def life(*looks: dict[str, Any]) -> RoutingPlan:
    """A plan after several looks at it, a minute apart."""
    plan = plan_of()
    for minute, look in enumerate(looks):
        plan = stored(PlanView(plan, NOW + 60 * minute, **look))
    return plan


FOUND: dict[str, Any] = {"problems": ()}
ACCEPTED: dict[str, Any] = {"problems": (), "accepted": True}
ROLLING: dict[str, Any] = {"problems": (), "accepted": True, "in_force": True, "progress": MOVING}
APPLIED: dict[str, Any] = {"problems": (), "accepted": True, "in_force": True, "progress": DONE}
BY_POLICY: dict[str, Any] = {"problems": (), "in_force": True, "progress": DONE}
WORSE: dict[str, Any] = BY_POLICY | {"worse": "chat takes 900 ms"}
REPLACED: dict[str, Any] = {"problems": (), "replaced_by": "demo-1111111111"}

LIVES: dict[str, tuple[tuple[dict[str, Any], ...], dict[str, tuple[str, str]]]] = {
    "a plan that was not checked says so": (
        ({},), {"Proposed": ("Unknown", "RatesUnavailable"), "Ready": ("Unknown", "RatesUnavailable")}),
    "a plan that holds waits": (
        (FOUND,),
        {"Proposed": ("True", "Feasible"), "Accepted": ("False", "AwaitingApproval"),
         "Ready": ("True", "AwaitingApproval")}),
    "a plan that breaks a constraint needs a person": (
        ({"problems": ("Memory",)},),
        {"Proposed": ("False", "CertificateRejected"), "Stalled": ("True", "CertificateRejected")}),
    "once found good it stays so": ((FOUND, {"problems": ("Memory",)}), {"Proposed": ("True", "Feasible")}),
    "an accepted plan is not applied yet": (
        (FOUND, ACCEPTED), {"Accepted": ("True", "DigestAccepted"), "Ready": ("True", "DigestAccepted")}),
    "a plan being applied is reconciling": (
        (FOUND, ROLLING),
        {"Applied": ("False", "RollingOut"), "Reconciling": ("True", "RollingOut"), "Ready": ("False", "RollingOut")}),
    "an applied plan is ready": (
        (FOUND, ROLLING, APPLIED), {"Applied": ("True", "AsPlanned"), "Ready": ("True", "AsPlanned")}),
    "the policy accepts what it applies": ((FOUND, BY_POLICY), {"Accepted": ("True", "PolicyAccepted")}),
    "a replaced plan says by which": (
        (FOUND, BY_POLICY, REPLACED),
        {"Applied": ("False", "Replaced"), "Superseded": ("True", "Replaced"), "Ready": ("True", "Replaced")}),
    "a plan never in force is never superseded": ((FOUND, REPLACED), {"Superseded": ("", "")}),
    "what people accepted stays marked": ((FOUND, APPLIED, REPLACED), {"Accepted": ("True", "DigestAccepted")}),
    "a plan in force again is no longer superseded": (
        (FOUND, BY_POLICY, REPLACED, APPLIED),
        {"Superseded": ("False", "AsPlanned"), "Applied": ("True", "AsPlanned")}),
    "bad service is noted before anything is done": (
        (FOUND, WORSE), {"Failed": ("Unknown", "WorseThanForecast"), "Ready": ("True", "AsPlanned")}),
    "service that recovers is noted too": ((FOUND, WORSE, BY_POLICY), {"Failed": ("False", "NothingWrong")}),
    "a plan that gave way failed": (
        (FOUND, WORSE, REPLACED | {"given_up": "served worse"}),
        {"Failed": ("True", "RolledBack"), "Superseded": ("True", "Replaced"), "Stalled": ("True", "RolledBack")}),
    "it stays failed": (
        (FOUND, WORSE, REPLACED | {"given_up": "served worse"}, REPLACED), {"Failed": ("True", "RolledBack")}),
    "accepted again it has another chance": (
        (FOUND, WORSE, REPLACED | {"given_up": "served worse"}, APPLIED), {"Failed": ("False", "NothingWrong")}),
    "a step beyond its deadline fails the plan": (
        (FOUND, BY_POLICY | {"progress": STUCK}),
        {"Failed": ("True", "DeadlineExceeded"), "Stalled": ("True", "DeadlineExceeded")}),
}  # fmt: skip


@pytest.mark.parametrize("sentence", LIVES)
def test_life(sentence: str) -> None:
    looks, expected = LIVES[sentence]
    found = {c.type: (c.status.value, c.reason) for c in life(*looks).status.conditions}
    assert {type_: found.get(type_, ("", "")) for type_ in expected} == expected


def test_each_look_at_an_unchanged_plan_writes_nothing() -> None:
    for looks, _ in LIVES.values():
        plan, last = life(*looks), {name: value for name, value in looks[-1].items() if name != "given_up"}
        assert stored(PlanView(plan, NOW + 9_999, **last)) == plan


def test_times_say_since_when_the_partition_stands() -> None:
    plan = life(FOUND, ROLLING, APPLIED, APPLIED)
    applied = next(c for c in plan.status.conditions if c.type == ConditionType.APPLIED)
    assert applied.last_transition_time == "2030-03-17T17:48:40Z"
    assert plan.status.rollout is not None
    assert plan.status.rollout.started == "2030-03-17T17:47:40Z"


def test_a_plan_carries_its_forecast_beside_what_is_observed() -> None:
    seen = Outlook(classes=(ClassOutlook(name="chat", mean_latency_milliseconds=812),))
    view = PlanView(demo().plan, NOW, found_by(demo()), hot=hot_values(demo().plan), observed=seen, **BY_POLICY)
    status = plan_status(view)
    assert status["forecast"]["classes"][0]["name"] == status["observed"]["classes"][0]["name"] == "chat"
    assert {value["name"] for value in status["hotValues"]} == {"chat", "code"}
    assert status["objective"]["costs"]["totalMilli"] > 0
    assert status["solve"]["status"] == "Optimal"


def test_only_the_plan_in_force_has_hot_values() -> None:
    plan = stored(PlanView(plan_of(), NOW, hot=hot_values(plan_of()), **BY_POLICY))
    assert len(plan.status.hot_values) == 1
    assert not stored(PlanView(plan, NOW, **REPLACED)).status.hot_values


def test_a_plan_that_people_wrote_gets_a_forecast() -> None:
    bare = demo().plan.model_copy(update={"status": RoutingPlanStatus()})
    found = found_by(replace(demo(), plan=bare))
    assert found.forecast == demo().plan.status.forecast
    assert (found.solve, found.objective) == (None, None)


def test_the_marks_of_a_plan_are_what_later_decisions_read() -> None:
    plan = life(FOUND, APPLIED)
    assert was_accepted_by_people(plan)
    assert shelf_of(fleet_with(), (plan,)).current == digest_of(plan)
