"""A fleet with all that belongs to it, as the cluster has it now.

Inputs: a session, the name of a fleet. Output: a frozen ``FleetView``. Reads only. A plan that this version of kvplan
cannot read is told on stderr and left out, so that one foreign object does not hide the others.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from kvplan_cli.cluster.session import Session
from kvplan_cli.errors import CommandError
from kvplan_cli.output import note
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.manifests import parse_object
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.errors import ManifestError
from kvplan_operator.kube.resources import REQUEST_CLASSES, ROUTING_PLANS, SERVING_FLEETS, Resource
from kvplan_operator.model.problem import belongs
from kvplan_operator.plan.standing import Shelf, shelf_of

Object = dict[str, Any]


@dataclass(frozen=True, eq=False)
class FleetView:
    """One fleet.

    Attributes:
        fleet: the fleet.
        raw: its object, with the ledger of who wrote what.
        classes: RequestClasses that belong to it, by name.
        plans: RoutingPlans that name it, by name.
    """

    fleet: ServingFleet
    raw: Object
    classes: tuple[RequestClass, ...]
    plans: tuple[RoutingPlan, ...]

    @property
    def name(self) -> str:
        """Of the fleet."""
        return self.fleet.metadata.name

    @cached_property
    def shelf(self) -> Shelf:
        """Which plan is in force, waits or is accepted."""
        return shelf_of(self.fleet, self.plans)


async def read_fleet(session: Session, name: str = "") -> FleetView:
    """The named fleet, or the only one of the namespace.

    Raises:
        CommandError: no such fleet, or several and none is named.
        ManifestError: the fleet or a class is no valid object to this version.
    """
    listing = await session.client.list(SERVING_FLEETS, session.namespace)
    raw = _chosen({item["metadata"]["name"]: item for item in listing.items}, name, session.namespace)
    fleets = [cast(ServingFleet, parse(item)) for item in listing.items]
    fleet = next(f for f in fleets if f.metadata.name == raw["metadata"]["name"])
    rivals = [f for f in fleets if f.metadata.name < fleet.metadata.name]
    classes = [cast(RequestClass, parse(i)) for i in await _items(session, REQUEST_CLASSES)]
    own = (c for c in classes if belongs(c, fleet) and not any(belongs(c, rival) for rival in rivals))
    plans = [plan for item in await _items(session, ROUTING_PLANS) if (plan := _plan(item)) is not None]
    return FleetView(fleet, raw, tuple(own), tuple(p for p in plans if p.spec.fleet_name == fleet.metadata.name))


def parse(item: Object) -> ServingFleet | RequestClass | RoutingPlan:
    """A typed object from what the API server sent.

    Raises:
        ManifestError: it is no valid object to this version.
    """
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return parse_object({**item, "metadata": metadata}, f"namespace {metadata.get('namespace')}")


def _chosen(fleets: dict[str, Object], name: str, namespace: str) -> Object:
    listed = ", ".join(sorted(fleets))
    if not fleets:
        remedy = "choose another with -n, or write a fleet (kvplan init drafts one from Deployments that run vLLM)"
        raise CommandError(f"namespace {namespace}", "it has no ServingFleet", remedy)
    if name and name not in fleets:
        raise CommandError("--fleet", f"namespace {namespace} has no ServingFleet {name!r}", f"there are {listed}")
    if not name and len(fleets) > 1:
        problem = f"it has {len(fleets)} ServingFleets ({listed})"
        raise CommandError(f"namespace {namespace}", problem, "choose one with --fleet")
    return fleets[name or listed]


async def _items(session: Session, resource: Resource) -> tuple[Object, ...]:
    return (await session.client.list(resource, session.namespace)).items


def _plan(item: Object) -> RoutingPlan | None:
    try:
        return cast(RoutingPlan, parse(item))
    except ManifestError as error:
        note(f"left out: {error.problems[0]}")
        return None
