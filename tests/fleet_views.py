"""Builders of a fleet as a command sees it on a cluster: with plans in their roles, and who wrote what."""

from typing import Any

from kvplan_cli.cluster.reading import FleetView
from kvplan_operator.api.common import Condition
from kvplan_operator.api.fleet_status import CandidatePlan, PlanReference, ServingFleetStatus
from kvplan_operator.api.routing_plan import RoutingPlan
from tests.planning import fleet
from tests.routing_plans import digest_of

UID = "u"


def fleet_view(
    *plans: RoutingPlan,
    current: RoutingPlan | None = None,
    candidate: RoutingPlan | None = None,
    accepted: RoutingPlan | None = None,
    owners: tuple[str, ...] = (),
    conditions: tuple[Condition, ...] = (),
    **spec: Any,
) -> FleetView:
    """The fleet ``demo`` with plans in these roles; keywords replace parts of its spec."""
    digest = {"digest": digest_of(accepted)} if accepted else {}
    made = fleet(acceptedPlan=digest, **spec)
    status = ServingFleetStatus(
        conditions=conditions,
        current_plan=PlanReference(name=current.metadata.name, digest=digest_of(current)) if current else None,
        candidate_plan=CandidatePlan(name=candidate.metadata.name, digest=digest_of(candidate)) if candidate else None,
    )
    known = made.metadata.model_copy(update={"uid": UID})
    return FleetView(made.model_copy(update={"metadata": known, "status": status}), _raw(owners), (), plans)


def _raw(owners: tuple[str, ...]) -> dict[str, Any]:
    """What the API server says beside spec and status; owners are managers of the accepted digest."""
    owned = [{"manager": o, "fieldsV1": {"f:spec": {"f:acceptedPlan": {"f:digest": {}}}}} for o in owners]
    managed = [*owned, {"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
    named = {"name": "demo", "namespace": "default", "uid": UID, "resourceVersion": "7", "generation": 1}
    return {"metadata": named | {"managedFields": managed}}
