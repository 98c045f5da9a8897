"""RoutingPlan.status: how a plan was found, what became of it, and how it does beside its forecast.

Input: a frozen ``PlanView``. Output: the status to write, merged with the stored one. Conditions remember what later
decisions are made from (``plan.standing``, ``plan.rollback``): Proposed and Accepted stay once True, Superseded says
that the plan was in force, Failed since when it serves worse and whether it was given up. Pure. Source: 01-api.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import HotClass, Outlook, RolloutProgress, RoutingPlanStatus
from kvplan_operator.model.instants import timestamp
from kvplan_operator.plan.document import outlook
from kvplan_operator.plan.judged import was_proposed
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.standing import condition_of, was_accepted_by_people
from kvplan_operator.status.merge import merge
from kvplan_operator.status.plan_ready import plan_readiness
from kvplan_operator.status.said import Progress, Said, as_stored, conditions, flag


@dataclass(frozen=True, eq=False)
class PlanView:
    """What one tick knows of a plan.

    Attributes:
        plan: the plan with its stored status.
        now: seconds since the epoch.
        found: what the planner or an assessment says of it; None: what is stored stays.
        problems: why it does not hold or cannot be one, a sentence each; None where it was not judged.
        in_force: whether it is the plan in force after this tick.
        accepted: whether its digest stands in ``spec.acceptedPlan``.
        replaced_by: name of the plan in force, where that is another.
        progress: of its rollout, where it is in force.
        hot: values in force, where it is in force.
        observed: load and service, where it is in force.
        worse: why it serves worse than forecast; empty where it does not.
        given_up: why it gave way to the last good plan in this tick; empty where it did not.
    """

    plan: RoutingPlan
    now: float
    found: RoutingPlanStatus | None = None
    problems: tuple[str, ...] | None = None
    in_force: bool = False
    accepted: bool = False
    replaced_by: str = ""
    progress: Progress | None = None
    hot: tuple[HotClass, ...] = ()
    observed: Outlook | None = None
    worse: str = ""
    given_up: str = ""


def found_by(planned: Planned) -> RoutingPlanStatus:
    """What a plan's status says of its worth; of a plan that people wrote, the forecast alone."""
    status = planned.plan.status
    return status if status.forecast is not None else RoutingPlanStatus(forecast=outlook(planned.forecast))


def plan_status(view: PlanView) -> dict[str, Any]:
    """The status to write; the stored one where nothing changed."""
    stored = view.plan.status
    found = stored if stored.forecast is not None else view.found or stored
    generation = view.plan.metadata.generation or 0
    said = list(_said(view))
    fresh = RoutingPlanStatus(
        observed_generation=generation,
        conditions=conditions([*plan_readiness(said), *said], generation, view.now),
        objective=found.objective,
        rejected=found.rejected,
        solve=found.solve,
        forecast=found.forecast,
        rollout=_rollout(view),
        hot_values=view.hot if view.in_force else (),
        observed=view.observed if view.in_force else stored.observed,
    )
    return merge(stored.to_wire(), fresh.to_wire())


def _rollout(view: PlanView) -> RolloutProgress | None:
    stored, progress = view.plan.status.rollout, view.progress
    if not view.in_force or progress is None:
        return stored
    started = timestamp(view.now) if stored is None or stored.started is None else stored.started
    return RolloutProgress(
        step=progress.step, steps=progress.steps, waiting_for=progress.waiting_for[:1024], started=started
    )


def _said(view: PlanView) -> Iterator[Said]:
    yield _proposed(view)
    yield _accepted(view)
    yield from _applied(view)
    yield from _superseded(view)
    yield from _failed(view)


def _proposed(view: PlanView) -> Said:
    """Once found good it stays so: whether it still holds today is the gate's business."""
    type_ = ConditionType.PROPOSED
    stored = condition_of(view.plan, type_)
    if stored is not None and (was_proposed(view.plan) or view.problems is None):
        return as_stored(type_, stored)
    if view.problems is None:
        return Said(type_, ConditionStatus.UNKNOWN, ConditionReason.RATES_UNAVAILABLE, "it was not checked yet")
    if view.problems:
        return flag(type_, False, ConditionReason.CERTIFICATE_REJECTED, "; ".join(view.problems))
    return flag(type_, True, ConditionReason.FEASIBLE, "it keeps every constraint")


def _accepted(view: PlanView) -> Said:
    """By people if its digest ever was; by the policy if it is in force without that."""
    type_ = ConditionType.ACCEPTED
    if view.accepted or was_accepted_by_people(view.plan):
        return flag(type_, True, ConditionReason.DIGEST_ACCEPTED, ConditionReason.DIGEST_ACCEPTED.sentence)
    stored = condition_of(view.plan, type_)
    if view.in_force or (stored is not None and stored.status is ConditionStatus.TRUE):
        return flag(type_, True, ConditionReason.POLICY_ACCEPTED, ConditionReason.POLICY_ACCEPTED.sentence)
    return flag(type_, False, ConditionReason.AWAITING_APPROVAL, ConditionReason.AWAITING_APPROVAL.sentence)


def _applied(view: PlanView) -> Iterator[Said]:
    """Only for plans that are or were in force; its time is since when the partition stands."""
    type_ = ConditionType.APPLIED
    if not view.in_force:
        if condition_of(view.plan, type_) is not None:
            yield flag(type_, False, ConditionReason.REPLACED, ConditionReason.REPLACED.sentence)
    elif view.progress is not None and view.progress.complete:
        yield flag(type_, True, ConditionReason.AS_PLANNED, ConditionReason.AS_PLANNED.sentence)
    else:
        waits = view.progress.sentence if view.progress else ConditionReason.ROLLING_OUT.sentence
        yield flag(type_, False, ConditionReason.ROLLING_OUT, waits)


def _superseded(view: PlanView) -> Iterator[Said]:
    type_ = ConditionType.SUPERSEDED
    if view.in_force:
        if condition_of(view.plan, type_) is not None:
            yield flag(type_, False, ConditionReason.AS_PLANNED, "it is in force again")
    elif condition_of(view.plan, ConditionType.APPLIED) is not None and view.replaced_by:
        yield flag(type_, True, ConditionReason.REPLACED, f"RoutingPlan {view.replaced_by} is in force")


def _failed(view: PlanView) -> Iterator[Said]:
    """Given up for good, unless people accept it again; Unknown while it serves worse than forecast."""
    type_ = ConditionType.FAILED
    stored = condition_of(view.plan, type_)
    refusal = view.progress.refusal if view.progress is not None else None
    if view.given_up:
        yield flag(type_, True, ConditionReason.ROLLED_BACK, view.given_up)
    elif stored is not None and stored.status is ConditionStatus.TRUE and not view.accepted and not view.in_force:
        yield as_stored(type_, stored)
    elif view.in_force and refusal is not None and refusal.stalled:
        yield flag(type_, True, refusal.reason, refusal.message)
    elif view.in_force and view.worse:
        yield Said(type_, ConditionStatus.UNKNOWN, ConditionReason.WORSE_THAN_FORECAST, view.worse)
    elif stored is not None:
        yield flag(type_, False, ConditionReason.NOTHING_WRONG, "")
