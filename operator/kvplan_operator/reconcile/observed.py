"""The conditions of a fleet that a look itself finds: InventoryReady, MetricsFresh, PlanFeasible.

Inputs: the ``Ground``, how the last solve ended, the plan that waits or is in force. Outputs: ``Said`` values. Pure.
"""

from collections.abc import Iterator

from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan_status import RoutingPlanStatus
from kvplan_operator.metrics import SolveOutcome
from kvplan_operator.model.inventory import ExclusionReason, Inventory
from kvplan_operator.reconcile.ground import Ground
from kvplan_operator.reconcile.solver_child import Solved
from kvplan_operator.status.said import Said, flag

_REASONS = {reason.value: reason for reason in ConditionReason}


def observed_conditions(ground: Ground, solved: Solved | None, shown: RoutingPlanStatus | None) -> Iterator[Said]:
    """What is known of inventory, measurements and plans.

    Args:
        ground: what plans are made from.
        solved: how the last solve ended; None before the first.
        shown: status of the plan that waits, else of the one in force.
    """
    yield _inventory(ground.inventory)
    freshness = ground.freshness
    yield Said(ConditionType.METRICS_FRESH, freshness.status, freshness.reason, freshness.message)
    feasible = _feasible(ground, solved, shown)
    if feasible is not None:
        yield feasible


def _inventory(inventory: Inventory) -> Said:
    type_ = ConditionType.INVENTORY_READY
    if inventory.nodes:
        return flag(type_, True, ConditionReason.GPUS_FOUND, ConditionReason.GPUS_FOUND.sentence)
    own = [entry for entry in inventory.excluded if entry.reason is not ExclusionReason.NOT_SELECTED]
    if not own:
        return flag(type_, False, ConditionReason.NO_NODES, ConditionReason.NO_NODES.sentence)
    why = "; ".join(f"{entry.node}: {entry.message or entry.reason.value}" for entry in own[:8])
    return flag(type_, False, _REASONS[own[0].reason.value], why)


def _feasible(ground: Ground, solved: Solved | None, shown: RoutingPlanStatus | None) -> Said | None:
    type_ = ConditionType.PLAN_FEASIBLE
    if ground.trouble:
        return flag(type_, False, ConditionReason.INPUTS_REFUSED, ground.trouble)
    if solved is not None and solved.outcome is SolveOutcome.REFUSED:
        return flag(type_, False, _REASONS.get(solved.reason, ConditionReason.SOLVER_FAILED), solved.message)
    if shown is None and solved is not None and solved.outcome is SolveOutcome.FAILED:
        return flag(type_, False, ConditionReason.SOLVER_FAILED, solved.message)
    return None if shown is None else _worth(shown)


def _worth(status: RoutingPlanStatus) -> Said:
    type_ = ConditionType.PLAN_FEASIBLE
    if status.rejected:
        most = max(status.rejected, key=lambda entry: (entry.share_milli, entry.name))
        message = f"{most.name}: {most.share_milli / 10:g} % are rejected; {most.why}: {most.remedy}"
        return flag(type_, True, ConditionReason.DEMAND_REJECTED, message)
    proven = status.solve is not None and status.solve.status == ConditionReason.OPTIMAL
    reason = ConditionReason.OPTIMAL if proven else ConditionReason.FEASIBLE
    return flag(type_, True, reason, reason.sentence)
