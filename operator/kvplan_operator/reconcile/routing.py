"""The routing of a fleet in one look: read the table in the cluster, decide the next one, publish it, collect shards.

Inputs: the snapshot, the plan in force as assessed today, what a rollout takes away. Output: the decision, after
it was written. Where a plan is in force that cannot be assessed now, slots and shares go on and the rest stays.
"""

from dataclasses import dataclass

from kvplan_operator.act.rollout import RolloutStep
from kvplan_operator.api.fleet_enums import RoutingMode
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.client import Client
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.route.carried import can_be_carried, carried_table
from kvplan_operator.route.conditions import name_taken
from kvplan_operator.route.cycle import TableDecision, next_table
from kvplan_operator.route.publish import NameTaken, collect, ensure_index, publish, withdraw
from kvplan_operator.route.published import Published, published


@dataclass(frozen=True, eq=False)
class InForce:
    """The plan in force.

    Attributes:
        plan: as it is written down.
        planned: the same, assessed on today's problem; None where it cannot be now.
    """

    plan: RoutingPlan
    planned: Planned | None


def read_table(snapshot: Snapshot, memory: Memory) -> Published | None:
    """The table as the watches have it; None where there is none."""
    memory.published = published(snapshot.cluster.config_maps, snapshot.fleet.metadata.name, memory.published)
    return memory.published


async def route(
    client: Client, snapshot: Snapshot, pursued: InForce | None, step: RolloutStep | None, memory: Memory
) -> TableDecision:
    """Decide and write; raises what a write raises, with the old table in force.

    Args:
        client: fenced.
        snapshot: everything known.
        pursued: the plan in force; None before the first.
        step: of a rollout: the slots it empties, the pods it ends before they could serve; None without one.
        memory: of the fleet.
    """
    fleet, before = snapshot.fleet, memory.published
    planned, going = None if pursued is None else pursued.planned, step or RolloutStep()
    if fleet.spec.routing.mode is RoutingMode.OFF:
        if before is not None:
            await withdraw(client, fleet, before)
        return next_table(snapshot, planned, going.draining, before or Published("", "", 0))
    try:
        before = before or await ensure_index(client, fleet)
    except NameTaken as error:
        return TableDecision(conditions=name_taken(str(error)))
    young = 0 <= snapshot.now - memory.keys_at < fleet.spec.routing.table_interval_seconds
    if pursued is not None and planned is None and can_be_carried(snapshot, before):
        decision = carried_table(snapshot, pursued.plan, going.draining, before, unlisted=going.unlisted)
    else:
        recent = memory.keys if young else None
        decision = next_table(snapshot, planned, going.draining, before, unlisted=going.unlisted, recent=recent)
    if decision.publication is not None:
        await publish(client, fleet, decision.publication, before)
    if not young:
        memory.keys_at = snapshot.now
    memory.keys = decision.keys
    await collect(client, fleet, before, snapshot.now, decision.document)
    return decision
