"""Accepting a plan: ``spec.acceptedPlan.digest`` of its fleet, written as a field manager of its own.

Inputs: a ``FleetView``, a plan. Output: the fleet as written. The write carries the fleet's uid and resourceVersion, so
that nothing is accepted for a fleet that changed in between. Git wins: where another manager owns the field the write
is refused unless it is forced, and then it is said that the other one will set it back.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvplan_cli.cluster.reading import FleetView, Object, read_fleet
from kvplan_cli.cluster.session import Session
from kvplan_cli.errors import CommandError
from kvplan_cli.output import note
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.api.labels import API_VERSION, APPROVAL_FIELD_MANAGER
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.errors import Conflict, FieldConflict
from kvplan_operator.kube.resources import SERVING_FLEETS
from kvplan_operator.plan.digest import plan_digest

_PATH: Final = ("f:spec", "f:acceptedPlan", "f:digest")
_FIELD: Final = "spec.acceptedPlan.digest"
_TRIES: Final = 4
"""The operator writes status now and then, which changes the version; a person is not asked again for that."""


async def accept(session: Session, view: FleetView, plan: RoutingPlan, *, force: bool, dry_run: bool) -> Object:
    """Write the plan's digest; the fleet as the API server has it then.

    Raises:
        CommandError: another manager owns the field and ``force`` is not given, or the fleet keeps changing.
    """
    fleet, digest = view.raw, plan_digest(plan.spec)
    for _ in range(_TRIES):
        document = acceptance(fleet, digest)
        try:
            return await session.client.apply(
                SERVING_FLEETS, document, manager=APPROVAL_FIELD_MANAGER, force=force, dry_run=dry_run
            )
        except FieldConflict:
            raise _owned(view, digest) from None
        except Conflict:
            fleet = await _read_again(session, view)
    raise CommandError(f"ServingFleet {view.name}", "somebody changes it all the time", "try again")


def acceptance(fleet: Object, digest: str) -> Object:
    """What is applied: the one field, for this very version of the fleet."""
    metadata = fleet["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    spec = {"acceptedPlan": {"digest": digest}}
    return {"apiVersion": API_VERSION, "kind": SERVING_FLEETS.kind, "metadata": kept, "spec": spec}


def owners_of_acceptance(fleet: Object) -> tuple[str, ...]:
    """Field managers that own ``spec.acceptedPlan.digest``, by name."""
    return tuple(sorted(set(_owners(fleet))))


def what_follows(view: FleetView, plan: RoutingPlan) -> Iterator[str]:
    """What a person should know about the acceptance of a plan."""
    spec, digest = view.fleet.spec, plan_digest(plan.spec)
    if spec.plan_policy.mode is PolicyMode.DRY_RUN:
        yield "planPolicy.mode is DryRun: nothing is applied until it is Approve or Auto"
    if spec.suspend:
        yield "the fleet is suspended: nothing is applied until spec.suspend is false"
    if digest == view.shelf.current:
        yield f"{plan.metadata.name} is in force already"
    for owner in owners_of_acceptance(view.raw):
        if owner != APPROVAL_FIELD_MANAGER:
            yield f"field manager {owner} owns {_FIELD}; where that is git, its next sync wins"


def _owned(view: FleetView, digest: str) -> CommandError:
    others = ", ".join(o for o in owners_of_acceptance(view.raw) if o != APPROVAL_FIELD_MANAGER) or "another manager"
    problem = f"field manager {others} owns {_FIELD} (now {view.fleet.spec.accepted_plan.digest})"
    remedy = f"write {digest} where {others} takes it from (git wins), or use --force until its next sync"
    return CommandError(f"ServingFleet {view.name}", problem, remedy)


async def _read_again(session: Session, view: FleetView) -> Object:
    """The fleet with its new version, where nothing that people decide about changed meanwhile."""
    fresh = await read_fleet(session, view.name)
    if fresh.fleet.metadata.uid != view.fleet.metadata.uid or fresh.fleet.spec != view.fleet.spec:
        raise CommandError(f"ServingFleet {view.name}", "somebody changed it meanwhile", "look at it and try again")
    note(f"ServingFleet {view.name} has a new version, its spec is the same: trying again")
    return fresh.raw


def _owners(fleet: Object) -> Iterator[str]:
    for entry in fleet["metadata"].get("managedFields") or ():
        fields: Any = entry.get("fieldsV1")
        for step in _PATH:
            fields = fields.get(step) if isinstance(fields, Mapping) else None
        if fields is not None:
            yield str(entry.get("manager"))
