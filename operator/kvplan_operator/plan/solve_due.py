"""Whether a new solve is due, and why.

Inputs: the fleet, the clock, what the last solve was made from, whether the plan that waits still holds. Output: a
``Trigger`` or None. Losing the memory of the last solve costs one more solve and nothing else: the same inputs give
the same plan. Pure. Source: 04-control-loop.
"""

from dataclasses import dataclass
from enum import StrEnum

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.plan.digest import digest

LEAST_SPACING_SECONDS = 30.0
"""Between two solves that a broken certificate or a failed solve asks for: neither is tried again in a loop."""
INVENTORY_ANNOTATION = "kvplan.dev/inventory"
"""On plans of the planner: ``inventory_digest`` of the GPUs they were made for."""


class Trigger(StrEnum):
    """Why a solve is due; the words are metric labels."""

    FIRST = "First"
    SPEC_CHANGED = "SpecChanged"
    INVENTORY_CHANGED = "InventoryChanged"
    CERTIFICATE_BROKEN = "CertificateBroken"
    SOLVE_FAILED = "SolveFailed"
    INTERVAL = "Interval"


@dataclass(frozen=True)
class LastSolve:
    """The solve before, whatever became of it.

    Attributes:
        ended: seconds since the epoch.
        inputs_digest: of the fleet's and classes' fields it was made from.
        inventory_digest: of the GPUs it was made for.
        failed: whether it ended without a word on the fleet: its process died, or the time was too short.
    """

    ended: float
    inputs_digest: str
    inventory_digest: str
    failed: bool = False


def solve_due(
    fleet: ServingFleet,
    now: float,
    last: LastSolve | None,
    *,
    inputs_digest: str,
    inventory_digest: str,
    waiting_holds: bool = True,
) -> Trigger | None:
    """Why to solve now; None: not now.

    Args:
        fleet: the fleet; a suspended one is not planned.
        now: seconds since the epoch.
        last: the solve before; None after a start.
        inputs_digest: of today's fields, see ``digest.inputs_digest``.
        inventory_digest: of today's GPUs.
        waiting_holds: False where the plan that waits, or the one in force where none does, broke its certificate.
    """
    if fleet.spec.suspend:
        return None
    if last is None:
        return Trigger.FIRST
    if last.inputs_digest != inputs_digest:
        return Trigger.SPEC_CHANGED
    if last.inventory_digest != inventory_digest:
        return Trigger.INVENTORY_CHANGED
    age = now - last.ended
    if not waiting_holds and age >= LEAST_SPACING_SECONDS:
        return Trigger.CERTIFICATE_BROKEN
    if last.failed and age >= LEAST_SPACING_SECONDS:
        return Trigger.SOLVE_FAILED
    return Trigger.INTERVAL if age >= fleet.spec.replan.interval_seconds else None


def inventory_digest(inventory: Inventory) -> str:
    """Digest of the GPUs a plan may use; which groups of the fleet run on them does not count."""
    return digest({node.name: [node.free_gpus, node.gpu_product] for node in inventory.nodes})
