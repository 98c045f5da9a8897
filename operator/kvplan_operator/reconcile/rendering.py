"""The statuses of one look: of the fleet, its classes and its plans.

Inputs: everything that was decided. Outputs: pairs of an object and its status as it should be. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet_status import LastSolve, TableStatus
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import HotClass, RoutingPlanStatus
from kvplan_operator.metrics import SolveOutcome
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.choice import Standing
from kvplan_operator.plan.hot_values import hot_values
from kvplan_operator.plan.planned import Planned
from kvplan_operator.reconcile.assessing import assessed, hot_of
from kvplan_operator.reconcile.deciding import Decided
from kvplan_operator.reconcile.figures import gpu_figures, group_figures, observed_outlook
from kvplan_operator.reconcile.ground import Ground
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.reconcile.observed import observed_conditions
from kvplan_operator.reconcile.shelving import Plans
from kvplan_operator.reconcile.solver_child import Solved
from kvplan_operator.route.cycle import TableDecision
from kvplan_operator.status.fleet import FleetView, fleet_status
from kvplan_operator.status.request_class import ClassView, class_status
from kvplan_operator.status.routing_plan import PlanView, found_by, plan_status
from kvplan_operator.status.said import Said, as_stored
from kvplan_solver.units import to_milli

Status = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Look:
    """All that one look found and decided.

    Attributes:
        snapshot: everything known.
        ground: what plans are made from.
        plans: of the fleet.
        decided: what is done.
        table: what was decided about routing; None where that had to wait.
        memory: of the fleet.
    """

    snapshot: Snapshot
    ground: Ground
    plans: Plans
    decided: Decided
    table: TableDecision | None
    memory: Memory

    @property
    def plan_in_force(self) -> RoutingPlan | None:
        """The plan in force after this look."""
        return self.plans.shelf.plans.get(self.decided.in_force or "")


def render_fleet(look: Look) -> Status:
    """The fleet's status."""
    shelf, decided, memory = look.plans.shelf, look.decided, look.memory
    shown = shelf.candidate if shelf.candidate in shelf.plans else decided.in_force
    table = () if look.table is None else tuple(Said(*condition) for condition in look.table.conditions)
    observed = (*observed_conditions(look.ground, memory.solved, _worth(look, shown)), *table, *_kept(look))
    return fleet_status(
        FleetView(
            fleet=look.snapshot.fleet,
            now=look.snapshot.now,
            shelf=shelf,
            choice=decided.choice,
            verdict=decided.verdict,
            progress=decided.progress,
            observed=observed,
            improvement_milli=_improvement(look),
            groups=group_figures(decided.sets, look.plan_in_force, look.snapshot.cluster.autoscalers),
            gpus=gpu_figures(look.ground.inventory, decided.sets),
            last_solve=_last_solve(memory.solved) or look.snapshot.fleet.status.last_solve,
            table=_table(look),
            solving=memory.solve is not None and memory.solved is None,
        )
    )


def render_classes(look: Look) -> Iterator[tuple[RequestClass, Status]]:
    """The status of each class."""
    problem, measured = look.ground.problem, look.snapshot.measured.classes
    inputs = {} if problem is None else {c.name: c for c in problem.instance.classes}
    held = {hot.name: hot.reservation_tokens for hot in _hot(look)}
    for request_class in look.snapshot.classes:
        name = request_class.metadata.name
        view = ClassView(
            request_class=request_class,
            now=look.snapshot.now,
            fleet_name=look.snapshot.fleet.metadata.name,
            fact=measured.get(name),
            planned=inputs.get(name),
            ambiguity=look.snapshot.fleet.spec.uncertainty.ambiguity,
            reservation_tokens=held.get(name),
        )
        yield request_class, class_status(view)


def render_plans(look: Look) -> Iterator[tuple[RoutingPlan, Status]]:
    """The status of each plan."""
    for digest, plan in sorted(look.plans.shelf.plans.items()):
        yield plan, plan_status(_plan_view(look, digest, plan))
    for plan in look.plans.shelf.misnamed:
        problem = "its name is not that of its digest: create it as <fleet>-<first 10 digits of the digest>"
        yield plan, plan_status(PlanView(plan=plan, now=look.snapshot.now, problems=(problem,)))


def _plan_view(look: Look, digest: str, plan: RoutingPlan) -> PlanView:
    decided, shelf, memory = look.decided, look.plans.shelf, look.memory
    in_force, judged = digest == decided.in_force, look.plans.judged.get(digest)
    other = look.plan_in_force
    worse, given_up = _service(look, digest)
    return PlanView(
        plan=plan,
        now=look.snapshot.now,
        found=_found(digest, plan, memory),
        problems=None if judged is None else judged.problems,
        in_force=in_force,
        accepted=digest == shelf.accepted,
        replaced_by=other.metadata.name if other is not None and not in_force else "",
        progress=decided.progress if in_force else None,
        hot=_hot(look) if in_force else (),
        observed=observed_outlook(look.snapshot) if in_force else None,
        worse=worse,
        given_up=given_up,
    )


def _found(digest: str, plan: RoutingPlan, memory: Memory) -> RoutingPlanStatus | None:
    """What the solve said of a plan, or an assessment of it."""
    if digest in memory.found or plan.status.forecast is not None:
        return memory.found.get(digest)
    known = assessed(plan, digest, (), memory)
    if not isinstance(known, Planned) or not known.certificate.holds:
        return None  # a plan that breaks a constraint promises nothing: its queues may never empty
    return found_by(known)


def _service(look: Look, digest: str) -> tuple[str, str]:
    """Why the plan serves worse than forecast, and why it gives way in this look."""
    returning, verdict = look.decided.returning, look.decided.verdict
    if returning is None or digest != look.plans.shelf.current:
        return "", ""
    leaves = look.decided.choice.standing is Standing.RETURNING and verdict is not None and verdict.go
    return returning.worse, returning.message if leaves else ""


def _hot(look: Look) -> tuple[HotClass, ...]:
    """Values in force after this look."""
    plan, digest = look.plan_in_force, look.decided.in_force
    if plan is None or digest is None:
        return ()
    return hot_of(look.plans.shelf, digest, look.memory) or hot_values(plan)


def _worth(look: Look, digest: str | None) -> RoutingPlanStatus | None:
    """What is known of a plan's worth: what the solve said, before that is in the cluster."""
    plan = look.plans.shelf.plans.get(digest or "")
    if digest is None or plan is None:
        return None
    return look.memory.found.get(digest, plan.status)


def _improvement(look: Look) -> int | None:
    judged, shelf = look.plans.judged, look.plans.shelf
    waits, now = judged.get(shelf.candidate or ""), judged.get(look.decided.in_force or "")
    return None if waits is None or now is None else to_milli(waits.saving_over(now))


def _kept(look: Look) -> Iterator[Said]:
    """Conditions of a table that this look says nothing of stay as they are."""
    fresh = () if look.table is None else tuple(condition.type for condition in look.table.conditions)
    stored = {condition.type: condition for condition in look.snapshot.fleet.status.conditions}
    for type_ in (ConditionType.TABLE_FRESH, ConditionType.AFFINITY_ENABLED):
        if type_ not in fresh and type_ in stored:
            yield as_stored(type_, stored[type_])


def _last_solve(solved: Solved | None) -> LastSolve | None:
    if solved is None:
        return None
    plan = solved.plan
    gap = plan.status.objective.gap_milli if plan is not None and plan.status.objective is not None else None
    words = {SolveOutcome.REFUSED: "Infeasible", SolveOutcome.FAILED: "Error"}
    status = plan.status.solve.status if plan is not None and plan.status.solve is not None else "Error"
    return LastSolve(
        duration_milliseconds=to_milli(solved.seconds),
        gap_milli=1_000 if gap is None else gap,
        status=words.get(solved.outcome, status),
    )


def _table(look: Look) -> TableStatus | None:
    if look.table is None:
        return look.snapshot.fleet.status.table
    document = look.table.document
    if document is None:
        return None
    keys = sum(int(shard["keys"]) for shard in document["shards"]) + len(document["inline"]["keys"])
    return TableStatus(generation=int(document["generation"]), keys=keys, digest=str(document["checksum"]))
