"""Which plans a fleet has, which one is in force, accepted or waiting: read from the cluster's objects alone.

Inputs: a ServingFleet and its RoutingPlans. Output: a frozen ``Shelf``. The plan in force is the one that the
fleet's status names; where that was lost, the one whose own conditions say so. A plan counts only under the name
that its digest gives it. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvplan_operator.api.common import Condition, ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_status import PlanReference
from kvplan_operator.api.labels import ORIGIN_LABEL, ORIGIN_USER
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.instants import instant
from kvplan_operator.plan.digest import NAME_DIGITS, plan_digest


@dataclass(frozen=True, eq=False)
class Shelf:
    """The plans of one fleet.

    Attributes:
        plans: by digest, those whose name agrees with it.
        misnamed: plans under a name that is not theirs; nothing follows from them.
        current: digest of the plan in force; None before the first.
        candidate: digest of the plan that waits for a decision; None where none does.
        accepted: digest that people or git accepted, whether or not such a plan exists; None where none is.
        lost: the plan that was in force and that somebody deleted; None normally.
    """

    plans: Mapping[str, RoutingPlan] = field(default_factory=dict)
    misnamed: tuple[RoutingPlan, ...] = ()
    current: str | None = None
    candidate: str | None = None
    accepted: str | None = None
    lost: PlanReference | None = None

    def name_of(self, digest: str | None) -> str:
        """Name of a plan for messages; the digest itself where there is no such plan."""
        plan = self.plans.get(digest or "")
        return plan.metadata.name if plan else str(digest)


def shelf_of(fleet: ServingFleet, plans: Iterable[RoutingPlan]) -> Shelf:
    """The plans of a fleet; those of other fleets are passed over."""
    own = [(plan, plan_digest(plan.spec)) for plan in plans if _belongs(plan, fleet)]
    named = {digest: plan for plan, digest in own if _well_named(plan, digest)}
    stated, waiting = fleet.status.current_plan, fleet.status.candidate_plan
    known = stated is not None and stated.digest in named
    return Shelf(
        plans=named,
        misnamed=tuple(plan for plan, digest in own if not _well_named(plan, digest)),
        current=stated.digest if stated is not None and known else _in_force_by_conditions(named),
        candidate=waiting.digest if waiting is not None and waiting.digest in named else None,
        accepted=fleet.spec.accepted_plan.digest,
        lost=stated if stated is not None and not known else None,
    )


def condition_of(plan: RoutingPlan, type_: ConditionType) -> Condition | None:
    """One condition of a plan."""
    return next((condition for condition in plan.status.conditions if condition.type == type_), None)


def holds_since(plan: RoutingPlan, type_: ConditionType) -> float | None:
    """Since when a condition of a plan is True, seconds since the epoch; None where it is not."""
    condition = condition_of(plan, type_)
    if condition is None or condition.status is not ConditionStatus.TRUE:
        return None
    return instant(condition.last_transition_time)


def was_accepted_by_people(plan: RoutingPlan) -> bool:
    """Whether its digest ever stood in ``spec.acceptedPlan``; the condition keeps its reason after that."""
    condition = condition_of(plan, ConditionType.ACCEPTED)
    return condition is not None and condition.reason == ConditionReason.DIGEST_ACCEPTED


def made_by_people(plan: RoutingPlan) -> bool:
    """Whether people or git wrote the plan."""
    return plan.metadata.labels.get(ORIGIN_LABEL) == ORIGIN_USER


def created_at(plan: RoutingPlan) -> float | None:
    """When the API server took the plan, seconds since the epoch; None before it did."""
    extra: Mapping[str, Any] = plan.metadata.model_extra or {}
    text = extra.get("creationTimestamp")
    return instant(text) if isinstance(text, str) else None


def _belongs(plan: RoutingPlan, fleet: ServingFleet) -> bool:
    same_namespace = plan.metadata.namespace == fleet.metadata.namespace
    return same_namespace and plan.spec.fleet_name == fleet.metadata.name


def _well_named(plan: RoutingPlan, digest: str) -> bool:
    return plan.metadata.name == f"{plan.spec.fleet_name}-{digest[:NAME_DIGITS]}"


def _in_force_by_conditions(plans: Mapping[str, RoutingPlan]) -> str | None:
    """The plan accepted last that was put in force and that no other replaced."""
    accepted = [
        (since, digest)
        for digest, plan in plans.items()
        if (since := holds_since(plan, ConditionType.ACCEPTED)) is not None
        and condition_of(plan, ConditionType.APPLIED) is not None
        and holds_since(plan, ConditionType.SUPERSEDED) is None
        and holds_since(plan, ConditionType.FAILED) is None
    ]
    return max(accepted)[1] if accepted else None
