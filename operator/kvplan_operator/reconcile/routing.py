"""The routing of a fleet in one look: read the table in the cluster, decide the next one, publish it, collect shards.

Inputs: the snapshot, the plan in force as assessed today, the slots that a rollout drains. Output: the decision, after
it was written. Where a plan is in force that cannot be assessed now, the table stays as it is.
"""

from collections.abc import Collection

from kvplan_operator.api.fleet_enums import RoutingMode
from kvplan_operator.kube.client import Client
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.route.cycle import TableDecision, next_table
from kvplan_operator.route.publish import collect, ensure_index, publish, withdraw
from kvplan_operator.route.published import Published, published


def read_table(snapshot: Snapshot, memory: Memory) -> Published | None:
    """The table as the watches have it; None where there is none."""
    memory.published = published(snapshot.cluster.config_maps, snapshot.fleet.metadata.name, memory.published)
    return memory.published


async def route(
    client: Client, snapshot: Snapshot, planned: Planned | None, draining: Collection[str], memory: Memory
) -> TableDecision:
    """Decide and write; raises what a write raises, with the old table in force.

    Args:
        client: fenced.
        snapshot: everything known.
        planned: the plan in force; None before the first.
        draining: slots that a rollout empties.
        memory: of the fleet.
    """
    fleet, before = snapshot.fleet, memory.published
    if fleet.spec.routing.mode is RoutingMode.OFF:
        if before is not None:
            await withdraw(client, fleet, before)
        return next_table(snapshot, planned, draining, before or Published("", "", 0))
    before = before or await ensure_index(client, fleet)
    young = snapshot.now - memory.keys_at < fleet.spec.routing.table_interval_seconds
    decision = next_table(snapshot, planned, draining, before, recent=memory.keys if young else None)
    if decision.publication is not None:
        await publish(client, fleet, decision.publication, before)
    if not young:
        memory.keys_at = snapshot.now
    memory.keys = decision.keys
    await collect(client, fleet, before, snapshot.now)
    return decision
