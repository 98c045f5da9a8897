"""The plans of a fleet as a history: which is in force, which waits, what became of the others, who accepted them.

Inputs: a ``FleetView``, the time. Outputs: frozen ``Entry`` values, the youngest first, and how they look. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kvplan_cli.cluster.approval import owners_of_acceptance
from kvplan_cli.cluster.reading import FleetView
from kvplan_cli.output import View, percent, sentence, table
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.labels import APPROVAL_FIELD_MANAGER
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.instants import timestamp
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.standing import Shelf, condition_of, created_at, holds_since, made_by_people
from kvplan_solver.units import from_milli

SHOWN_DIGITS = 12
"""Digits of a digest in a table; ten or more of them name a plan."""
_HEADINGS = ("plan", "state", "digest", "cost/s", "gap", "accepted by", "made by", "age")


class State(StrEnum):
    """What became of a plan."""

    IN_FORCE = "in force"
    CANDIDATE = "candidate"
    ACCEPTED = "accepted"
    """Its digest stands in the fleet, and another plan is in force still."""
    FAILED = "failed"
    SUPERSEDED = "superseded"
    REFUSED = "refused"
    """Its certificate does not hold."""
    PROPOSED = "proposed"
    MISNAMED = "misnamed"
    """Its name is not that of its content: nothing follows from it."""


@dataclass(frozen=True)
class Entry:
    """One plan.

    Attributes:
        name: of the RoutingPlan.
        state: what became of it.
        digest: of its spec.
        cost: per second, wasted KV tokens; None where nobody priced it yet.
        gap: proven distance to the bound, relative; None where none is proven.
        accepted_by: who accepted it; empty where nobody did.
        made_by: ``kvplan`` or ``people``.
        created: seconds since the epoch; None where the API server does not say.
    """

    name: str
    state: State
    digest: str
    cost: float | None
    gap: float | None
    accepted_by: str
    made_by: str
    created: float | None


def entries(view: FleetView) -> tuple[Entry, ...]:
    """Every plan of the fleet, the youngest first; of one second, the one in force."""
    found = [_entry(view, plan, digest) for digest, plan in view.shelf.plans.items()]
    found += [_entry(view, plan, plan_digest(plan.spec)) for plan in view.shelf.misnamed]
    return tuple(sorted(found, key=_order))


def _order(entry: Entry) -> tuple[float, bool, str]:
    """Times of creation are whole seconds."""
    return -(entry.created or 0.0), entry.state is not State.IN_FORCE, entry.name


def history_view(view: FleetView, now: float) -> View:
    """How the history looks.

    Args:
        view: the fleet.
        now: seconds since the epoch.
    """
    found = entries(view)
    document = {"fleet": view.name, "namespace": view.fleet.metadata.namespace, "plans": [_plain(e) for e in found]}
    if not found:
        return View(document, [sentence(f"{view.name} has no plans yet.")])
    rows = (_row(entry, now) for entry in found)
    return View(document, [table(f"Plans of {view.name}, the youngest first", _HEADINGS, rows)])


def age(seconds: float) -> str:
    """An age in the largest unit of which there are two: ``45s``, ``12m``, ``3h``, ``5d``."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def _entry(view: FleetView, plan: RoutingPlan, digest: str) -> Entry:
    objective = plan.status.objective
    gap = objective.gap_milli if objective is not None else None
    return Entry(
        name=plan.metadata.name,
        state=_state(view.shelf, plan, digest),
        digest=digest,
        cost=from_milli(objective.costs.total_milli) if objective is not None else None,
        gap=None if gap is None else from_milli(gap),
        accepted_by=_accepted_by(view, plan, digest),
        made_by="people" if made_by_people(plan) else "kvplan",
        created=created_at(plan),
    )


def _state(shelf: Shelf, plan: RoutingPlan, digest: str) -> State:
    return next(state for state, holds in _states(shelf, plan, digest) if holds)


def _states(shelf: Shelf, plan: RoutingPlan, digest: str) -> Iterator[tuple[State, bool]]:
    proposed = condition_of(plan, ConditionType.PROPOSED)
    yield State.MISNAMED, plan in shelf.misnamed
    yield State.IN_FORCE, digest == shelf.current
    yield State.FAILED, holds_since(plan, ConditionType.FAILED) is not None
    yield State.ACCEPTED, digest == shelf.accepted
    yield State.CANDIDATE, digest == shelf.candidate
    yield State.SUPERSEDED, holds_since(plan, ConditionType.SUPERSEDED) is not None
    yield State.REFUSED, proposed is not None and proposed.reason == ConditionReason.CERTIFICATE_REJECTED
    yield State.PROPOSED, True


def _accepted_by(view: FleetView, plan: RoutingPlan, digest: str) -> str:
    """The field manager where the digest stands in the fleet; of other plans only people or policy is known."""
    if digest == view.shelf.accepted:
        named = ("kvplan approve" if o == APPROVAL_FIELD_MANAGER else o for o in owners_of_acceptance(view.raw))
        return ", ".join(named) or "people"
    condition = condition_of(plan, ConditionType.ACCEPTED)
    if condition is None or holds_since(plan, ConditionType.ACCEPTED) is None:
        return ""
    return "people" if condition.reason == ConditionReason.DIGEST_ACCEPTED else "policy Auto"


def _row(entry: Entry, now: float) -> list[object]:
    return [
        entry.name, entry.state.value, entry.digest[:SHOWN_DIGITS], entry.cost,
        None if entry.gap is None else percent(entry.gap), entry.accepted_by or None, entry.made_by,
        None if entry.created is None else age(now - entry.created),
    ]  # fmt: skip


def _plain(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "state": entry.state.value,
        "digest": entry.digest,
        "costPerSecond": entry.cost,
        "gap": entry.gap,
        "acceptedBy": entry.accepted_by or None,
        "madeBy": entry.made_by,
        "created": None if entry.created is None else timestamp(entry.created),
    }
