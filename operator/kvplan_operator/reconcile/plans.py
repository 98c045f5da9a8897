"""RoutingPlan objects: written once under the name of their digest, owned by the fleet, collected when not needed.

Inputs: a plan of the solver, or plans to delete. Outputs: objects in the cluster. A name that is taken is the same
plan, since the name is the digest's; anything else under it is an error for a person. Statuses are written elsewhere.
"""

from collections.abc import Iterable
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import API_VERSION, FLEET_LABEL
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.errors import DigestError
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import AlreadyExists
from kvplan_operator.kube.resources import ROUTING_PLANS, SERVING_FLEETS
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.solve_due import INVENTORY_ANNOTATION
from kvplan_operator.reconcile.projections import without_managed_fields


async def store_plan(client: Client, fleet: ServingFleet, plan: RoutingPlan, inventory: str | None) -> RoutingPlan:
    """The plan as the cluster has it, created if it is not there.

    Args:
        client: fenced.
        fleet: its owner.
        plan: to write; its status stays behind.
        inventory: digest of the GPUs it was made for; None keeps what the plan says.

    Raises:
        DigestError: another plan has its name.
    """
    document = plan_object(fleet, plan, inventory)
    try:
        stored = await client.create(ROUTING_PLANS, document)
    except AlreadyExists:
        stored = await client.get(ROUTING_PLANS, fleet.metadata.namespace, plan.metadata.name)
    found = RoutingPlan.model_validate(without_managed_fields(stored))
    if plan_digest(found.spec) != plan_digest(plan.spec):
        raise DigestError(f"RoutingPlan {plan.metadata.name} is another plan than its name says: delete it")
    return found


def plan_object(fleet: ServingFleet, plan: RoutingPlan, inventory: str | None) -> dict[str, Any]:
    """The document of a plan."""
    annotations = dict(plan.metadata.annotations) | ({INVENTORY_ANNOTATION: inventory} if inventory else {})
    owner = {
        "apiVersion": API_VERSION,
        "kind": SERVING_FLEETS.kind,
        "name": fleet.metadata.name,
        "uid": fleet.metadata.uid,
        "controller": True,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": ROUTING_PLANS.kind,
        "metadata": {
            "name": plan.metadata.name,
            "namespace": fleet.metadata.namespace,
            "labels": dict(plan.metadata.labels) | {FLEET_LABEL: fleet.metadata.name},
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": plan.spec.to_wire(),
    }


async def collect_plans(client: Client, plans: Iterable[RoutingPlan]) -> tuple[str, ...]:
    """Delete plans; give back their names."""
    names = []
    for plan in plans:
        namespace, name = plan.metadata.namespace, plan.metadata.name
        await client.delete(ROUTING_PLANS, namespace, name, uid=plan.metadata.uid)
        names.append(name)
    return tuple(names)
