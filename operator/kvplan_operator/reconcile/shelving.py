"""The plans of a fleet in one look: those in the cluster, what a solve found, and what became of the plan that waits.

Inputs: the snapshot, the ``Ground``, the ``Memory``, the fleet's ``Solving``. Output: ``Plans``. What a solve found is
written as a RoutingPlan before anything refers to it. A look that is cut off by a conflict loses nothing: what is not
in the fleet's status yet stays in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.client import Client
from kvplan_operator.logs import Decision
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.hot_values import hot_values
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.pending import outcome_of
from kvplan_operator.plan.standing import Shelf, shelf_of
from kvplan_operator.reconcile.assessing import judge, judged_plans
from kvplan_operator.reconcile.ground import Ground
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.reconcile.plans import store_plan
from kvplan_operator.reconcile.solving import Solving
from kvplan_solver.units import from_milli

SEEN_WITHIN_SECONDS: Final = 30.0
"""After a plan was written the watch tells of it; later than this it was deleted."""


@dataclass(frozen=True, eq=False)
class Plans:
    """The plans of a fleet.

    Attributes:
        shelf: all of them.
        judged: those that a choice needs, as they stand today, by digest.
    """

    shelf: Shelf
    judged: Mapping[str, Judged]


async def plans_of(client: Client, snapshot: Snapshot, ground: Ground, memory: Memory, solving: Solving) -> Plans:
    """The plans, after what a solve found was taken and another one was started if due."""
    fleet, now = snapshot.fleet, snapshot.now
    shelf = await _restored(client, fleet, _known(snapshot, memory), memory, now)
    solved = solving.collect(ground, memory, now)
    if solved is not None:
        memory.untaken = solved.plan
    if memory.untaken is not None and memory.untaken.spec.inputs_digest != ground.inputs_digest:
        memory.untaken = None
    if memory.untaken is not None and ground.problem is not None:
        shelf = await _taken(client, fleet, memory.untaken, shelf, memory, now)
        memory.untaken = None
    judged = judged_plans(shelf, memory)
    waiting = shelf.candidate or shelf.current or ""
    holds = waiting not in judged or judged[waiting].holds
    warm, running = shelf.plans.get(waiting), shelf.plans.get(shelf.current or "")
    solving.start(fleet, ground, memory, now, waiting_holds=holds, warm=warm, running=running)
    return Plans(shelf, judged)


def _known(snapshot: Snapshot, memory: Memory) -> Shelf:
    """The shelf as the cluster has it, with what was written a moment ago."""
    seen = {plan.metadata.name for plan in snapshot.plans}
    memory.stored = {
        digest: (at, plan)
        for digest, (at, plan) in memory.stored.items()
        if plan.metadata.name not in seen and snapshot.now - at < SEEN_WITHIN_SECONDS
    }
    shelf = shelf_of(snapshot.fleet, (*snapshot.plans, *(plan for _, plan in memory.stored.values())))
    if memory.candidate is not None and memory.candidate[0] in (shelf.candidate, shelf.current):
        memory.candidate = None
    _drop_what_is_written(shelf, memory)
    return shelf if memory.candidate is None else replace(shelf, candidate=memory.candidate[0])


def _drop_what_is_written(shelf: Shelf, memory: Memory) -> None:
    """Findings are kept until the plan's own status has them."""
    status = {digest: plan.status for digest, plan in shelf.plans.items()}
    memory.found = {d: found for d, found in memory.found.items() if d in status and status[d].forecast is None}
    memory.hot = {d: hot for d, hot in memory.hot.items() if d == shelf.current and status[d].hot_values != hot}


async def _restored(client: Client, fleet: ServingFleet, shelf: Shelf, memory: Memory, now: float) -> Shelf:
    """The plan in force is written again if somebody deleted it."""
    if shelf.current is not None:
        memory.in_force = shelf.plans[shelf.current]
    lost, kept = shelf.lost, memory.in_force
    if lost is None or kept is None or plan_digest(kept.spec) != lost.digest:
        return shelf
    plan = await store_plan(client, fleet, kept, None)
    memory.found[lost.digest] = kept.status
    return replace(_with(shelf, lost.digest, plan, memory, now), current=lost.digest, lost=None)


async def _taken(
    client: Client, fleet: ServingFleet, found: RoutingPlan, shelf: Shelf, memory: Memory, now: float
) -> Shelf:
    """What a fresh plan becomes: the candidate, new hot values, or nothing."""
    digest = plan_digest(found.spec)
    fresh = judge(replace(shelf, plans={digest: found}, current=None), digest, memory)
    judged = judged_plans(shelf, memory)
    if fresh is None:
        return shelf
    least = from_milli(fleet.spec.replan.min_improvement_milli)
    pending, current = judged.get(shelf.candidate or ""), judged.get(shelf.current or "")
    tunes = fleet.spec.plan_policy.mode is not PolicyMode.DRY_RUN
    outcome = outcome_of(fresh, pending, current, least, may_retune=tunes)
    if outcome.retuned is not None and shelf.current is not None:
        memory.hot[shelf.current] = hot_values(found)
    waits = None if outcome.candidate is None else outcome.candidate.digest
    if waits == digest and digest not in shelf.plans:
        gpus = memory.last_solve.inventory_digest if memory.last_solve is not None else None
        shelf = _with(shelf, digest, await store_plan(client, fleet, found, gpus), memory, now)
        memory.found[digest] = _signed(found, fleet).status
    memory.candidate = (waits,)
    memory.log.decided(_said(found, fresh, shelf, waits))
    return replace(shelf, candidate=waits)


def _with(shelf: Shelf, digest: str, plan: RoutingPlan, memory: Memory, now: float) -> Shelf:
    memory.stored[digest] = (now, plan)
    return replace(shelf, plans={**shelf.plans, digest: plan})


def _signed(plan: RoutingPlan, fleet: ServingFleet) -> RoutingPlan:
    """The plan with whose and which spec it was made for."""
    solve = plan.status.solve
    if solve is None:
        return plan
    made_for = {"fleet_uid": fleet.metadata.uid, "fleet_generation": fleet.metadata.generation}
    status = plan.status.model_copy(update={"solve": solve.model_copy(update=made_for)})
    return plan.model_copy(update={"status": status})


def _said(plan: RoutingPlan, fresh: Judged, shelf: Shelf, waits: str | None) -> Decision:
    name = plan.metadata.name
    if not fresh.holds:
        return Decision("plan", "Rejected", f"the plan found breaks {fresh.problems[0]}", name)
    outcome = "Proposed" if waits == fresh.digest else "Kept"
    message = f"{name} is proposed" if waits == fresh.digest else f"{name} changes nothing that is worth it"
    objective = plan.status.objective
    gap = -1 if objective is None or objective.gap_milli is None else objective.gap_milli
    numbers: dict[str, int | float | str] = {
        "costPerSecond": round(fresh.cost, 3),
        "gapMilli": gap,
        "candidate": waits or "",
    }
    return Decision("plan", outcome, f"{message}; in force: {shelf.name_of(shelf.current)}", name, numbers)
