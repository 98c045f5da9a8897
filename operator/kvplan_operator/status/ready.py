"""Ready, Reconciling and Stalled of a fleet, per policy: what Flux, Argo CD and ``kubectl wait`` read.

Input: a frozen ``Situation``. Output: three conditions. Ready means what 09-contracts says for the policy in force, and
never that while the plan in force is half applied, whoever holds it; Reconciling that a change moves; Stalled that only
a person can go on, with the reason and the remedy. Pure.
"""

from dataclasses import dataclass

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.plan.choice import Choice, Standing
from kvplan_operator.status.said import Progress, Said, flag, nothing_wrong

READY, RECONCILING, STALLED = ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED


@dataclass(frozen=True)
class Situation:
    """Where a fleet stands.

    Attributes:
        mode: ``spec.planPolicy.mode``.
        suspended: ``spec.suspend``.
        before: status of Ready as stored; None where there is none.
        choice: what is pursued.
        refusal: the gate's on what is pursued; None where it was let through or nothing is.
        progress: of the rollout of the plan in force; None where no plan is.
        candidate: whether a plan waits for a decision.
        no_plan: why there is no plan to propose; None where there is one or one is being sought.
        groups_ready: whether every group of the plan in force serves.
        acknowledged: whether every live router has the newest table.
        solving: whether a plan is being computed.
    """

    mode: PolicyMode
    suspended: bool
    before: ConditionStatus | None
    choice: Choice
    refusal: Refusal | None = None
    progress: Progress | None = None
    candidate: bool = False
    no_plan: Said | None = None
    groups_ready: bool = False
    acknowledged: bool = False
    solving: bool = False


def readiness(at: Situation) -> tuple[Said, Said, Said]:
    """Ready, Reconciling and Stalled."""
    if at.suspended:
        return _suspended(at), nothing_wrong(RECONCILING), nothing_wrong(STALLED)
    ready = _ready(at)
    stalled = _stalled(at, ready)
    if stalled.status is not ConditionStatus.TRUE:
        return ready, _reconciling(at), stalled
    # What only a person can move on is not ready, whatever else is well: kstatus reads Stalled first.
    stuck = ready if ready.status is ConditionStatus.FALSE else flag(READY, False, stalled.reason, stalled.message)
    return stuck, nothing_wrong(RECONCILING), stalled


def _suspended(at: Situation) -> Said:
    """As it was: suspending makes nothing ready, and nothing unready while what runs is what was planned."""
    unfinished = _unfinished(at)
    if unfinished is not None:
        return flag(READY, False, ConditionReason.SUSPENDED, unfinished.message)
    message = "spec.suspend is true: Ready is as it was then"
    return Said(READY, at.before or ConditionStatus.FALSE, ConditionReason.SUSPENDED, message)


def _ready(at: Situation) -> Said:
    if at.choice.stalled:
        return flag(READY, False, at.choice.reason, at.choice.message)
    if at.choice.standing is Standing.ACCEPTED and at.refusal is not None:
        return flag(READY, False, at.refusal.reason, at.refusal.message)
    unfinished = _unfinished(at)
    if unfinished is not None:
        return unfinished
    if at.mode is PolicyMode.DRY_RUN:
        return _proposed(at, honest=at.no_plan)
    if at.choice.reason is ConditionReason.AWAITING_APPROVAL:
        return _proposed(at, honest=None)
    return _applied(at)


def _unfinished(at: Situation) -> Said | None:
    """How far the plan in force is applied, and who holds it; None where it is, or there is none."""
    if at.progress is None or (at.progress.complete and at.progress.refusal is None):
        return None
    if at.progress.refusal is not None:
        return flag(READY, False, at.progress.refusal.reason, at.progress.refusal.message)
    holding = _holding(at)
    held = "" if holding is None else f"; held: {holding.message}"
    return flag(READY, False, ConditionReason.ROLLING_OUT, f"{at.progress.sentence}{held}")


def _holding(at: Situation) -> Refusal | None:
    """The gate's refusal of the plan in force; one of a plan that would replace it holds nothing."""
    return at.refusal if at.choice.standing is Standing.IN_FORCE else None


def _proposed(at: Situation, honest: Said | None) -> Said:
    """A fresh candidate is there, or nothing better than what is in force; in DryRun an honest refusal does."""
    if at.candidate or (at.progress is not None and at.no_plan is None):
        return flag(READY, True, at.choice.reason, at.choice.message)
    if honest is not None:
        return flag(READY, True, at.choice.reason, f"{at.choice.message}: {honest.message}")
    return _no_plan(at)


def _no_plan(at: Situation) -> Said:
    if at.no_plan is not None:
        return flag(READY, False, at.no_plan.reason, at.no_plan.message)
    if at.refusal is not None:
        return flag(READY, False, at.refusal.reason, at.refusal.message)
    return flag(READY, False, ConditionReason.SOLVING, "a plan is being computed")


def _applied(at: Situation) -> Said:
    """The plan in force runs: its groups serve and the routers have the table."""
    if at.progress is None:
        return _no_plan(at)
    if not at.groups_ready:
        return flag(READY, False, ConditionReason.ROLLING_OUT, "some groups of the plan do not serve yet")
    if not at.acknowledged:
        return flag(READY, False, ConditionReason.TABLE_PENDING, ConditionReason.TABLE_PENDING.sentence)
    return flag(READY, True, ConditionReason.AS_PLANNED, ConditionReason.AS_PLANNED.sentence)


def _reconciling(at: Situation) -> Said:
    if at.progress is not None and not at.progress.complete and _holding(at) is None:
        return flag(RECONCILING, True, ConditionReason.ROLLING_OUT, at.progress.sentence)
    if at.solving and at.progress is None and not at.candidate:
        return flag(RECONCILING, True, ConditionReason.SOLVING, "a plan is being computed")
    return nothing_wrong(RECONCILING)


def _stalled(at: Situation, ready: Said) -> Said:
    """Only a person can go on: a choice, a gate or a step says so, or no plan exists and none is in force."""
    refusals = [at.refusal, None if at.progress is None else at.progress.refusal]
    for refusal in refusals:
        if refusal is not None and refusal.stalled:
            return flag(STALLED, True, refusal.reason, refusal.message)
    if at.choice.stalled or (ready.status is ConditionStatus.FALSE and _hopeless(at, ready)):
        return flag(STALLED, True, ready.reason, ready.message)
    return nothing_wrong(STALLED)


def _hopeless(at: Situation, ready: Said) -> bool:
    """Whether what is not ready is so because no plan can exist for the spec as it is."""
    why = at.no_plan
    return why is not None and why.type is ConditionType.PLAN_FEASIBLE and ready.reason is why.reason
