"""Builders of RoutingPlans without a solver: small, named after their digest, with the conditions a case needs."""

from typing import Any

from kvplan_operator.api.common import Condition, ConditionStatus, ObjectMeta
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_status import CandidatePlan, PlanReference
from kvplan_operator.api.routing_plan import RoutingPlan, RoutingPlanSpec
from kvplan_operator.model.instants import timestamp
from kvplan_operator.plan.digest import plan_digest, plan_name
from tests.planning import fleet

NOW = 1_900_000_000.0
"""A time all cases share: 2030-03-17 17:46:40 UTC, a Sunday."""
INPUTS = "1" * 64

Object = dict[str, Any]


def group(configuration: str = "tp1", nodes: tuple[str, ...] = ("a",), **rest: Any) -> Object:
    """One group of the configuration on each node named."""
    return {
        "configuration": configuration,
        "replicas": len(nodes),
        "placements": [{"stages": [node]} for node in nodes],
        "kvCapacityTokens": 64_000,
        "budgetTokens": 50_000,
        "maxSequences": 16,
    } | rest


def class_plan(name: str = "chat", tokens: int = 320, to: str = "tp1", **rest: Any) -> Object:
    """A class that goes as a whole to one configuration."""
    return {
        "name": name,
        "reservationTokens": tokens,
        "fractileMilli": 909,
        "routes": [{"configuration": to, "shareMilli": 1000, "reservationTokens": tokens}],
        "admitMilli": 1000,
        "maxPromptTokens": 2000,
        "maxOutputTokens": 500,
    } | rest


def plan_of(groups: tuple[Object, ...] = (), classes: tuple[Object, ...] = (), **metadata: Any) -> RoutingPlan:
    """A plan of the fleet ``demo``; keywords add to its metadata, ``status`` replaces its status."""
    status, kinds = metadata.pop("status", {}), list(groups or (group(),))
    served = list(classes or (class_plan(to=kinds[0]["configuration"]),))
    spec = RoutingPlanSpec.model_validate({
        "fleetName": "demo", "inputsDigest": metadata.pop("inputs", INPUTS), "method": "Certified",
        "groups": kinds, "classes": served,
    })  # fmt: skip
    named = {"name": plan_name(spec)} | metadata
    return RoutingPlan.model_validate({"metadata": named, "spec": spec.to_wire(), "status": status})


def digest_of(plan: RoutingPlan) -> str:
    return plan_digest(plan.spec)


def marked(plan: RoutingPlan, *conditions: Condition, **status: Any) -> RoutingPlan:
    """The plan with these conditions added; keywords replace other parts of its status."""
    kept = tuple(c for c in plan.status.conditions if c.type not in {new.type for new in conditions})
    fresh = plan.status.model_copy(update={"conditions": (*kept, *conditions)} | status)
    return plan.model_copy(update={"status": fresh})


def condition(
    type_: ConditionType,
    status: ConditionStatus = ConditionStatus.TRUE,
    reason: ConditionReason = ConditionReason.AS_PLANNED,
    since: float = NOW,
) -> Condition:
    """A condition that came to be at some time."""
    return Condition(type=type_, status=status, last_transition_time=timestamp(since), reason=reason, message="")


def served_until(plan: RoutingPlan, when: float) -> RoutingPlan:
    """The plan as one that was in force, served well, and was replaced."""
    return marked(
        plan,
        condition(ConditionType.ACCEPTED, reason=ConditionReason.POLICY_ACCEPTED, since=when - 7_200),
        condition(ConditionType.APPLIED, ConditionStatus.FALSE, ConditionReason.REPLACED, when),
        condition(ConditionType.SUPERSEDED, reason=ConditionReason.REPLACED, since=when),
    )


def in_force_since(plan: RoutingPlan, when: float) -> RoutingPlan:
    """The plan as one in force whose groups all run."""
    return marked(
        plan,
        condition(ConditionType.PROPOSED, reason=ConditionReason.FEASIBLE, since=when),
        condition(ConditionType.ACCEPTED, reason=ConditionReason.POLICY_ACCEPTED, since=when),
        condition(ConditionType.APPLIED, since=when),
    )


def fleet_with(
    current: RoutingPlan | None = None,
    candidate: RoutingPlan | None = None,
    accepted: str | None = None,
    mode: str = "Auto",
    **spec: Any,
) -> ServingFleet:
    """The fleet ``demo`` with these plans in its status."""
    wanted = {"planPolicy": {"mode": mode}} | ({"acceptedPlan": {"digest": accepted}} if accepted else {}) | spec
    plain = fleet(**wanted)
    status = plain.status.model_copy(update={
        "current_plan": PlanReference(**_reference(current)) if current else None,
        "candidate_plan": CandidatePlan(**_reference(candidate)) if candidate else None,
    })  # fmt: skip
    metadata = ObjectMeta(name="demo", uid="fleet-uid", generation=3)
    return plain.model_copy(update={"status": status, "metadata": metadata})


def _reference(plan: RoutingPlan) -> dict[str, str]:
    return {"name": plan.metadata.name, "digest": digest_of(plan)}
