"""ServingFleet.status from what one tick knows.

Input: a frozen ``FleetView``. Output: the status to write, merged with the stored one: equal to it where there is
nothing to say. Pure. Source: 01-api (ServingFleet), 09-contracts (Ready).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.common import Condition, ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_status import (
    CandidatePlan,
    GpuInventory,
    GroupStatus,
    LastSolve,
    PlanReference,
    ServingFleetStatus,
    TableStatus,
)
from kvplan_operator.gate.chain import in_force
from kvplan_operator.gate.verdict import Refusal, Verdict
from kvplan_operator.plan.choice import Choice
from kvplan_operator.plan.standing import Shelf
from kvplan_operator.status.merge import merge
from kvplan_operator.status.ready import Situation, readiness
from kvplan_operator.status.said import Progress, Said, conditions, flag, nothing_wrong, of_refusal


@dataclass(frozen=True, eq=False)
class FleetView:
    """What one tick knows of a fleet.

    Attributes:
        fleet: the fleet with its stored status.
        now: seconds since the epoch.
        shelf: its plans; ``candidate`` is the one that waits after this tick.
        choice: what is pursued.
        verdict: the gate's; None where nothing was judged.
        progress: of the rollout of the plan in force; None where no plan is.
        observed: InventoryReady, MetricsFresh, PlanFeasible, TableFresh, AffinityEnabled, as far as known.
        improvement_milli: saving of the candidate over the plan in force, thousandths; None without either.
        groups: by configuration.
        gpus: of the selected nodes.
        last_solve: the latest run of the solver.
        table: published last.
        solving: whether a plan is being computed.
    """

    fleet: ServingFleet
    now: float
    shelf: Shelf
    choice: Choice
    verdict: Verdict | None = None
    progress: Progress | None = None
    observed: tuple[Said, ...] = ()
    improvement_milli: int | None = None
    groups: tuple[GroupStatus, ...] = ()
    gpus: GpuInventory | None = None
    last_solve: LastSolve | None = None
    table: TableStatus | None = None
    solving: bool = False

    @property
    def refusal(self) -> Refusal | None:
        """The gate's, if any."""
        return None if self.verdict is None else self.verdict.refusal

    @property
    def waiting(self) -> str | None:
        """Digest of the candidate, unless it is in force by now."""
        return None if self.shelf.candidate == self.in_force else self.shelf.candidate

    @property
    def in_force(self) -> str | None:
        """Digest of the plan in force after this tick."""
        return in_force(self.shelf.current, self.verdict)


def fleet_status(view: FleetView) -> dict[str, Any]:
    """The status to write; the stored one where nothing changed."""
    generation = view.fleet.metadata.generation or 0
    fresh = ServingFleetStatus(
        observed_generation=generation,
        conditions=conditions(_said(view), generation, view.now),
        current_plan=_current(view),
        candidate_plan=_candidate(view),
        groups=tuple(sorted(view.groups, key=lambda group: group.configuration)),
        gpus=view.gpus,
        last_solve=view.last_solve,
        table=view.table,
    )
    return merge(view.fleet.status.to_wire(), fresh.to_wire())


def _current(view: FleetView) -> PlanReference | None:
    """The plan in force; one that somebody deleted is still the one in force until it is written again."""
    digest = view.in_force
    if digest is None or digest not in view.shelf.plans:
        return view.shelf.lost
    return PlanReference(name=view.shelf.name_of(digest), digest=digest)


def _candidate(view: FleetView) -> CandidatePlan | None:
    digest = view.waiting
    if digest is None or digest not in view.shelf.plans:
        return None
    saving = view.improvement_milli
    return CandidatePlan(name=view.shelf.name_of(digest), digest=digest, improvement_milli=saving)


def _said(view: FleetView) -> Iterator[Said]:
    """Every condition; a refusal has the last word on the one it speaks of, kstatus comes from all of them.

    Where the choice itself needs a person, that is what PlanAccepted tells: the plan in force, which the gate judged
    then, is not what somebody asked for.
    """
    yield from view.observed
    choice = view.choice
    yield Said(ConditionType.PLAN_ACCEPTED, choice.status, choice.reason, choice.message)
    yield _rollout(view)
    yield nothing_wrong(ConditionType.CONTENDED)
    if view.refusal is not None and not (choice.stalled and view.refusal.condition is ConditionType.PLAN_ACCEPTED):
        yield of_refusal(view.refusal)
    yield from readiness(_situation(view))


def _rollout(view: FleetView) -> Said:
    type_, progress = ConditionType.ROLLOUT_COMPLETE, view.progress
    if progress is None:
        return flag(type_, False, view.choice.reason, "no plan is in force")
    if progress.refusal is not None:
        return flag(type_, False, progress.refusal.reason, progress.refusal.message)
    if not progress.complete:
        return flag(type_, False, ConditionReason.ROLLING_OUT, progress.sentence)
    return flag(type_, True, ConditionReason.AS_PLANNED, ConditionReason.AS_PLANNED.sentence)


def _situation(view: FleetView) -> Situation:
    observed = {said.type: said for said in view.observed}
    table = observed.get(ConditionType.TABLE_FRESH)
    return Situation(
        mode=view.fleet.spec.plan_policy.mode,
        suspended=view.fleet.spec.suspend,
        before=_stored(view.fleet.status.conditions),
        choice=view.choice,
        refusal=view.refusal,
        progress=view.progress,
        candidate=view.waiting is not None,
        no_plan=_why_no_plan(observed),
        groups_ready=all(group.ready >= group.planned for group in view.groups),
        # Keys that nobody asked for yet make a table stale, not unread.
        acknowledged=table is not None and table.reason != ConditionReason.TABLE_PENDING,
        solving=view.solving,
    )


def _why_no_plan(observed: dict[ConditionType, Said]) -> Said | None:
    """The first thing a plan needs and does not have."""
    needed = (ConditionType.INVENTORY_READY, ConditionType.METRICS_FRESH, ConditionType.PLAN_FEASIBLE)
    missing = (observed[type_] for type_ in needed if type_ in observed)
    return next((said for said in missing if said.status is ConditionStatus.FALSE), None)


def _stored(stored: tuple[Condition, ...]) -> ConditionStatus | None:
    return next((condition.status for condition in stored if condition.type == ConditionType.READY), None)
