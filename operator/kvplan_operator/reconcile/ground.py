"""What plans are made from in this look: settled measurements, the problem, or why there is none.

Inputs: a ``Snapshot`` and the fleet's ``Memory``. Output: a frozen ``Ground``. The inventory is read and a problem
built anew only when what they are made from changed, so that a look at rest costs little. Does no I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_

from kvplan_operator.gate.gate_input import Freshness
from kvplan_operator.model.freshness import metrics_verdict
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.observed import observed_inventory
from kvplan_operator.model.problem import PlanningInputs, Problem
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.digest import inputs_digest
from kvplan_operator.plan.same_inputs import same_inputs
from kvplan_operator.plan.settled import facts_in_status, settled_inputs
from kvplan_operator.plan.solve_due import inventory_digest
from kvplan_operator.reconcile.memory import Memory, Problems, Seen
from kvplan_operator.reconcile.unsupported import unsupported
from kvplan_solver.errors import SolverError


@dataclass(frozen=True, eq=False)
class Ground:
    """What plans are made from.

    Attributes:
        freshness: of the measurements.
        inventory: GPUs; empty where the objects could not be read.
        inputs: settled; None where they could not be read.
        problem: built from them; None where it could not be.
        trouble: why there is no problem, object, field, value and remedy; empty where there is one.
        inputs_digest: of the fields of fleet and classes that matter for planning.
        inventory_digest: of the GPUs.
    """

    freshness: Freshness
    inventory: Inventory
    inputs: PlanningInputs | None
    problem: Problem | None
    trouble: str
    inputs_digest: str
    inventory_digest: str


def ground_of(snapshot: Snapshot, memory: Memory) -> Ground:
    """The ground of one look; what is new is kept in the memory."""
    freshness = Freshness(*metrics_verdict(snapshot))
    digest = inputs_digest(snapshot.fleet.spec, {c.metadata.name: c.spec for c in snapshot.classes})
    try:
        inputs = _settled(snapshot, memory)
    except SolverError as error:
        nothing = Inventory(())
        return Ground(freshness, nothing, None, None, str(error), digest, inventory_digest(nothing))
    found = _problem(inputs, snapshot, memory)
    gpus = inventory_digest(inputs.inventory)
    return Ground(freshness, inputs.inventory, inputs, found.problem, found.trouble, digest, gpus)


def _settled(snapshot: Snapshot, memory: Memory) -> PlanningInputs:
    """The inputs, remembered for the next look."""
    before = memory.facts if memory.facts is not None else facts_in_status(snapshot.classes)
    inputs = settled_inputs(snapshot, before, memory.measurements, _inventory(snapshot, memory))
    memory.facts, memory.measurements = dict(inputs.facts), dict(inputs.measured)
    return inputs


def _inventory(snapshot: Snapshot, memory: Memory) -> Inventory:
    """The GPUs; those of the look before where it saw the very same objects."""
    if memory.seen is None or not _same_objects(memory.seen.snapshot, snapshot):
        memory.seen = Seen(snapshot, observed_inventory(snapshot))
    return memory.seen.inventory


def _same_objects(before: Snapshot, now: Snapshot) -> bool:
    """Watches keep an object as it is until it changes, and then replace it."""
    a, b = before.cluster, now.cluster
    same = before.fleet is now.fleet and a.worker_sets_served is b.worker_sets_served
    return same and _identical(a.nodes, b.nodes) and _identical(a.pods, b.pods)


def _identical(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _problem(inputs: PlanningInputs, snapshot: Snapshot, memory: Memory) -> Problems:
    """The problem of these inputs; the one before where they are the same."""
    refused, known = unsupported(snapshot), memory.problems
    if known.made_of is None or known.refused != refused or not same_inputs(known.made_of, inputs):
        memory.problems = Problems(inputs, refused, *_built(inputs, refused))
    return memory.problems


def _built(inputs: PlanningInputs, refused: str) -> tuple[Problem | None, str]:
    if refused:
        return None, refused
    try:
        return inputs.problem(), ""
    except SolverError as error:
        return None, str(error)
