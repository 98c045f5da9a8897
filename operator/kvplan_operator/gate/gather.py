"""From one look at a fleet and a choice to what the gate judges.

Inputs: a ``Snapshot``, the ``Choice`` and the plans it was made from, today's ``Inventory``, the verdict on the
measurements, the answer of the step planner. Output: a ``GateInput``. Pure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.gate.gate_input import Freshness, Gain, GateInput, Ground
from kvplan_operator.gate.history import history_of
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.choice import Choice, Standing
from kvplan_operator.plan.diff import diff_plans
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.solve_due import INVENTORY_ANNOTATION, inventory_digest
from kvplan_operator.plan.standing import Shelf, condition_of, holds_since


def gate_input(
    snapshot: Snapshot,
    choice: Choice,
    shelf: Shelf,
    judged: Mapping[str, Judged],
    inventory: Inventory,
    freshness: Freshness,
    path: Refusal | None = None,
    *,
    finishing: bool = False,
) -> GateInput | None:
    """What the gate judges; None where nothing is pursued.

    Args:
        snapshot: one look at the fleet.
        choice: what to pursue.
        shelf: the fleet's plans.
        judged: plans judged today, by digest; the plan in force with its present hot values.
        inventory: the GPUs today.
        freshness: of the measurements.
        path: why no order of steps leads to the plan; None where one does.
        finishing: whether the next step towards it stops nothing.
    """
    if choice.target is None or choice.standing is None:
        return None
    plan, current = shelf.plans[choice.target], shelf.plans.get(shelf.current or "")
    found, before = judged.get(choice.target), judged.get(shelf.current or "")
    return GateInput(
        now=snapshot.now,
        fleet=snapshot.fleet,
        plan=plan,
        digest=choice.target,
        standing=choice.standing,
        accepted=choice.accepted,
        freshness=freshness,
        problems=None if found is None else found.problems,
        ground=Ground(
            planned=plan.metadata.annotations.get(INVENTORY_ANNOTATION),
            today=inventory_digest(inventory),
            lost=tuple(lost_ground(plan, snapshot.fleet, inventory)),
        ),
        change=diff_plans(current, plan),
        gain=None if found is None or before is None else Gain(before.cost, found.cost, before.holds),
        unfinished=choice.standing is Standing.IN_FORCE and _restarts_ahead(plan),
        finishing=finishing,
        history=history_of(snapshot, current),
        path=path,
    )


def _restarts_ahead(plan: RoutingPlan) -> bool:
    """Whether its groups do not all run yet; a plan that returned is put back without waiting for a budget."""
    returned = condition_of(plan, ConditionType.SUPERSEDED) is not None
    return holds_since(plan, ConditionType.APPLIED) is None and not returned


def lost_ground(plan: RoutingPlan, fleet: ServingFleet, inventory: Inventory) -> Iterator[str]:
    """A sentence for each node that offers fewer GPUs than the plan places on it."""
    offered = {node.name: node.free_gpus for node in inventory.nodes}
    why = {excluded.node: excluded.reason.value for excluded in inventory.excluded}
    for node, needed in sorted(_placed_gpus(plan, fleet).items()):
        if offered.get(node, 0) < needed:
            reason = f" ({why[node]})" if node in why else ""
            yield f"node {node} offers {offered.get(node, 0)} of the {needed} GPUs that the plan places there{reason}"


def _placed_gpus(plan: RoutingPlan, fleet: ServingFleet) -> Counter[str]:
    """GPUs by node; plans without placements name none, and their certificate packs them."""
    per_stage = {k.name: k.tensor_parallel for k in fleet.spec.configurations}
    placed: Counter[str] = Counter()
    for group in plan.spec.groups:
        for placement in group.placements:
            for node in placement.stages:
                placed[node] += per_stage.get(group.configuration, 0)
    return placed
