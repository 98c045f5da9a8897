"""ServingFleet.status: Ready per policy, kstatus, the plans in force and waiting, and no write without a change."""

from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import FLEET_CONDITIONS, ConditionType
from kvplan_operator.api.conditions import ConditionReason as Reason
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.api.fleet_status import GpuInventory, GroupStatus, LastSolve, ServingFleetStatus, TableStatus
from kvplan_operator.gate.verdict import Refusal, Verdict
from kvplan_operator.plan.choice import choose
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.standing import shelf_of
from kvplan_operator.status.fleet import FleetView, fleet_status
from kvplan_operator.status.said import Progress, Said, flag
from tests.routing_plans import NOW, condition, digest_of, fleet_with, group, in_force_since, plan_of

OLD = in_force_since(plan_of((group(nodes=("a",)),)), NOW - 5_000)
NEW = plan_of((group("tp2", ("a",)),))
Type = ConditionType

GPUS = flag(Type.INVENTORY_READY, True, Reason.GPUS_FOUND, "8 GPUs on 2 nodes")
METRICS = flag(Type.METRICS_FRESH, True, Reason.NOTHING_WRONG, "")
FEASIBLE = flag(Type.PLAN_FEASIBLE, True, Reason.OPTIMAL, "")
TABLE = flag(Type.TABLE_FRESH, True, Reason.TABLE_ACKNOWLEDGED, "")
NO_AFFINITY = flag(Type.AFFINITY_ENABLED, False, Reason.GAIN_UNKNOWN, "")
WELL = (GPUS, METRICS, FEASIBLE, TABLE, NO_AFFINITY)
NO_TABLE = (GPUS, METRICS, FEASIBLE, flag(Type.TABLE_FRESH, False, Reason.TABLE_PENDING, ""), NO_AFFINITY)
NO_RATES = (GPUS, flag(Type.METRICS_FRESH, False, Reason.RATES_UNAVAILABLE, "no router answers"), TABLE)
TOO_MANY = flag(Type.PLAN_FEASIBLE, False, Reason.MIN_GPUS_ABOVE_BUDGET, "spec.nodes.minGpus is 9: use at most 8")
HOPELESS = (GPUS, METRICS, TOO_MANY, TABLE)

DONE = Progress(3, 3, complete=True)
MOVING = Progress(1, 3, "slot tp1-0 to drain")
STUCK = Progress(
    1, 3, refusal=Refusal(Type.ROLLOUT_COMPLETE, Reason.DRAIN_UNCONFIRMED, "router r-1 is silent", stalled=True)
)
DWELLING = Refusal(Type.PLAN_ACCEPTED, Reason.DWELLING, "stays until 18:00")
CLOSED = Refusal(Type.PLAN_ACCEPTED, Reason.OUTSIDE_WINDOW, "opens at 02:00")
UNASKED = Refusal(Type.PLAN_ACCEPTED, Reason.AWAITING_APPROVAL, "write spec.acceptedPlan.digest")
FIGHT = Refusal(Type.CONTENDED, Reason.FOREIGN_WRITER, "set back 5 times", stalled=True)
SERVING = (GroupStatus(configuration="tp1", planned=1, running=1, ready=1),)
STARTING = (GroupStatus(configuration="tp1", planned=1, running=1, ready=0),)


def view(mode: str = "Auto", plans: str = "both", accepted: Any = None, go: bool = False, **parts: Any) -> FleetView:
    """A fleet whose plan in force runs and serves, with a candidate beside it."""
    current, candidate = (OLD if plans in ("both", "old") else None), (NEW if plans in ("both", "new") else None)
    fleet = fleet_with(current, candidate, accepted and digest_of(accepted), mode, suspend=parts.pop("suspend", False))
    fleet = with_status(fleet, parts.pop("stored", fleet.status))
    shelf = shelf_of(fleet, [plan for plan in (current, candidate) if plan])
    judged = {digest: Judged(plan, digest, 100.0) for digest, plan in shelf.plans.items()}
    choice = choose(PolicyMode(mode), shelf, judged)
    refusal = parts.pop("refusal", None)
    verdict = Verdict(choice.target, refusal) if choice.target and (go or refusal) else None
    usual: dict[str, Any] = {
        "progress": DONE if current else None, "observed": WELL, "groups": SERVING if current else (),
    }  # fmt: skip
    return FleetView(fleet, NOW, shelf, choice, verdict, **(usual | parts))


def with_status(fleet: ServingFleet, status: Any) -> ServingFleet:
    return fleet.model_copy(update={"status": status})


def word(status: dict[str, Any], type_: ConditionType) -> tuple[str, str]:
    """Status and reason of a condition."""
    found = {condition["type"]: condition for condition in status["conditions"]}
    return found[type_]["status"], found[type_]["reason"]


READY: dict[str, tuple[dict[str, Any], tuple[str, Reason], Reason | None, Reason | None]] = {
    "DryRun is ready with a candidate": (
        {"mode": "DryRun", "plans": "new"}, ("True", Reason.PROPOSED_ONLY), None, None),
    "DryRun is ready with an honest refusal": (
        {"mode": "DryRun", "plans": "none", "observed": HOPELESS}, ("True", Reason.PROPOSED_ONLY), None, None),
    "DryRun is not ready while the first plan is sought": (
        {"mode": "DryRun", "plans": "none", "solving": True}, ("False", Reason.SOLVING), Reason.SOLVING, None),
    "Approve is ready when a plan waits": (
        {"mode": "Approve", "plans": "new"}, ("True", Reason.AWAITING_APPROVAL), None, None),
    "Approve is ready when nothing better is known": (
        {"mode": "Approve", "plans": "old"}, ("True", Reason.AWAITING_APPROVAL), None, None),
    "Approve is not ready without rates": (
        {"mode": "Approve", "plans": "none", "observed": NO_RATES}, ("False", Reason.RATES_UNAVAILABLE), None, None),
    "Approve stalls where no plan can exist": (
        {"mode": "Approve", "plans": "none", "observed": HOPELESS}, ("False", Reason.MIN_GPUS_ABOVE_BUDGET), None,
        Reason.MIN_GPUS_ABOVE_BUDGET),
    "an accepted plan is ready once applied": (
        {"mode": "Approve", "accepted": OLD}, ("True", Reason.AS_PLANNED), None, None),
    "an accepted plan that waits for its window is not": (
        {"mode": "Approve", "accepted": NEW, "refusal": CLOSED}, ("False", Reason.OUTSIDE_WINDOW), None, None),
    "a digest that no plan has stalls": (
        {"mode": "Approve", "plans": "old", "accepted": NEW}, ("False", Reason.UNKNOWN_DIGEST), None,
        Reason.UNKNOWN_DIGEST),
    "Auto is ready as planned": ({"plans": "old"}, ("True", Reason.AS_PLANNED), None, None),
    "Auto stays ready while a candidate waits": ({"refusal": DWELLING}, ("True", Reason.AS_PLANNED), None, None),
    "a moving rollout is reconciling": (
        {"plans": "old", "progress": MOVING}, ("False", Reason.ROLLING_OUT), Reason.ROLLING_OUT, None),
    "a rollout moves on while a candidate waits": (
        {"progress": MOVING, "refusal": DWELLING}, ("False", Reason.ROLLING_OUT), Reason.ROLLING_OUT, None),
    "a rollout that the gate holds does not move": (
        {"plans": "old", "progress": MOVING, "refusal": CLOSED}, ("False", Reason.ROLLING_OUT), None, None),
    "a stuck rollout is stalled": (
        {"plans": "old", "progress": STUCK}, ("False", Reason.DRAIN_UNCONFIRMED), None, Reason.DRAIN_UNCONFIRMED),
    "groups that do not serve yet are not ready": (
        {"plans": "old", "groups": STARTING}, ("False", Reason.ROLLING_OUT), None, None),
    "a table that is not acknowledged is not ready": (
        {"plans": "old", "observed": NO_TABLE}, ("False", Reason.TABLE_PENDING), None, None),
    "a fight over fields stalls and is not ready": (
        {"refusal": FIGHT}, ("False", Reason.FOREIGN_WRITER), None, Reason.FOREIGN_WRITER),
    "a plan that Approve holds half applied is not ready": (
        {"mode": "Approve", "plans": "old", "progress": MOVING, "refusal": UNASKED}, ("False", Reason.ROLLING_OUT),
        None, None),
    "nor with another plan that waits": (
        {"mode": "Approve", "progress": MOVING, "refusal": UNASKED}, ("False", Reason.ROLLING_OUT), None, None),
    "a plan that DryRun holds half applied is not ready": (
        {"mode": "DryRun", "progress": MOVING, "refusal": UNASKED}, ("False", Reason.ROLLING_OUT), None, None),
    "a stuck plan is stalled under Approve": (
        {"mode": "Approve", "progress": STUCK}, ("False", Reason.DRAIN_UNCONFIRMED), None, Reason.DRAIN_UNCONFIRMED),
    "Auto without any plan says why": (
        {"plans": "none", "observed": NO_RATES}, ("False", Reason.RATES_UNAVAILABLE), None, None),
    "a plan that runs stays ready without rates": (
        {"plans": "old", "observed": NO_RATES}, ("True", Reason.AS_PLANNED), None, None),
}  # fmt: skip


@pytest.mark.parametrize("sentence", READY)
def test_ready(sentence: str) -> None:
    given, ready, reconciling, stalled = READY[sentence]
    status = fleet_status(view(**given))
    assert word(status, Type.READY) == (ready[0], ready[1].value)
    for type_, reason in ((Type.RECONCILING, reconciling), (Type.STALLED, stalled)):
        expected = ("False", Reason.NOTHING_WRONG.value) if reason is None else ("True", reason.value)
        assert word(status, type_) == expected


@pytest.mark.parametrize("before", [ConditionStatus.TRUE, ConditionStatus.FALSE])
def test_a_suspended_fleet_is_as_ready_as_it_was(before: ConditionStatus) -> None:
    stored = condition(Type.READY, before)
    status = fleet_status(view(suspend=True, stored=ServingFleetStatus(conditions=(stored,))))
    assert word(status, Type.READY) == (before, "Suspended")
    assert word(status, Type.STALLED) == ("False", "NothingWrong")


@pytest.mark.parametrize("progress", [MOVING, STUCK])
def test_a_suspended_fleet_is_not_ready_while_its_plan_is_half_applied(progress: Progress) -> None:
    stored = ServingFleetStatus(conditions=(condition(Type.READY, ConditionStatus.TRUE),))
    status = fleet_status(view(suspend=True, stored=stored, progress=progress))
    assert word(status, Type.READY) == ("False", "Suspended")


def test_who_holds_a_half_applied_plan_is_told() -> None:
    status = fleet_status(view(mode="Approve", plans="old", progress=MOVING, refusal=UNASKED))
    told = next(condition["message"] for condition in status["conditions"] if condition["type"] == "Ready")
    assert told == f"{MOVING.sentence}; held: {UNASKED.message}"


def test_a_fleet_says_all_its_conditions_with_its_generation() -> None:
    status = fleet_status(view())
    assert {condition["type"] for condition in status["conditions"]} == {str(type_) for type_ in FLEET_CONDITIONS}
    assert {condition["observedGeneration"] for condition in status["conditions"]} == {3}
    assert status["observedGeneration"] == 3


def test_a_refusal_has_the_last_word_on_its_condition() -> None:
    assert word(fleet_status(view(refusal=DWELLING)), Type.PLAN_ACCEPTED) == ("False", "Dwelling")
    assert word(fleet_status(view(refusal=FIGHT)), Type.CONTENDED) == ("True", "ForeignWriter")


def test_the_plan_that_was_let_through_is_in_force_and_waits_no_longer() -> None:
    status = fleet_status(view(go=True, progress=MOVING))
    assert status["currentPlan"] == {"name": NEW.metadata.name, "digest": digest_of(NEW)}
    assert "candidatePlan" not in status


def test_a_refused_candidate_is_shown_with_what_it_saves() -> None:
    status = fleet_status(view(refusal=DWELLING, improvement_milli=123))
    assert status["currentPlan"]["digest"] == digest_of(OLD)
    assert status["candidatePlan"]["improvementMilli"] == 123


def test_a_deleted_plan_stays_named_until_it_is_written_again() -> None:
    fleet = fleet_with(OLD)
    shelf = shelf_of(fleet, ())
    gone = FleetView(fleet, NOW, shelf, choose(PolicyMode.AUTO, shelf, {}))
    assert fleet_status(gone)["currentPlan"]["digest"] == digest_of(OLD)


def test_nothing_is_written_a_minute_later() -> None:
    details: dict[str, Any] = {
        "gpus": GpuInventory(allocatable=8, used=2),
        "last_solve": LastSolve(duration_milliseconds=100, status="Optimal"),
        "table": TableStatus(generation=4, keys=1_000),
    }
    first = view(**details)
    written = ServingFleetStatus.model_validate(fleet_status(first))
    later = replace(
        first, fleet=with_status(first.fleet, written), now=NOW + 60,
        last_solve=LastSolve(duration_milliseconds=950, status="Optimal"), table=TableStatus(generation=4, keys=1_060),
    )  # fmt: skip
    assert fleet_status(later) == written.to_wire()
    assert word(fleet_status(replace(later, progress=MOVING)), Type.READY) == ("False", "RollingOut")


def test_the_reason_of_a_condition_is_one_of_the_published_words() -> None:
    published = {reason.value for reason in Reason}
    for given, *_ in READY.values():
        assert {condition["reason"] for condition in fleet_status(view(**given))["conditions"]} <= published


def test_what_was_observed_is_said_as_it_was_observed() -> None:
    said = Said(Type.METRICS_FRESH, METRICS.status, Reason.NOTHING_WRONG, "all 4 routers answered")
    status = fleet_status(view(observed=(GPUS, said, FEASIBLE, TABLE, NO_AFFINITY)))
    found = {condition["type"]: condition["message"] for condition in status["conditions"]}
    assert found["MetricsFresh"] == "all 4 routers answered"
