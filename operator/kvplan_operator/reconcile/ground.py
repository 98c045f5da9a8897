"""What plans are made from in this look: settled measurements, the problem, or why there is none.

Inputs: a ``Snapshot`` and the fleet's ``Memory``. Output: a frozen ``Ground``. A problem is built anew only when its
inputs changed, so that a look at rest costs little. Does no I/O.
"""

import json
from dataclasses import dataclass, replace

from kvplan_operator.gate.gate_input import Freshness
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.freshness import metrics_verdict
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.observed import planning_inputs
from kvplan_operator.model.problem import PlanningInputs, Problem
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.digest import inputs_digest
from kvplan_operator.plan.settled import facts_in_status, settled
from kvplan_operator.plan.solve_due import inventory_digest
from kvplan_operator.reconcile.memory import Memory, Problems
from kvplan_operator.reconcile.solver_wire import encode_inputs
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
        inputs = _settled_inputs(snapshot, memory)
    except SolverError as error:
        nothing = Inventory(())
        return Ground(freshness, nothing, None, None, str(error), digest, inventory_digest(nothing))
    found = _problem(inputs, snapshot, memory)
    gpus = inventory_digest(inputs.inventory)
    return Ground(freshness, inputs.inventory, inputs, found.problem, found.trouble, digest, gpus)


def _settled_inputs(snapshot: Snapshot, memory: Memory) -> PlanningInputs:
    """Fresh inputs where they moved; a class that nothing is heard of now keeps what was known of it."""
    before = memory.facts if memory.facts is not None else facts_in_status(snapshot.classes)
    fresh = settled(planning_inputs(snapshot), before, memory.measurements)
    silent = {c.metadata.name for c in snapshot.classes if _is_silent(snapshot, c.metadata.name)}
    facts = {
        name: found.completed_by(before.get(name, ClassFacts())) if name in silent else found
        for name, found in fresh.facts.items()
    }
    memory.facts, memory.measurements = dict(facts), dict(fresh.measured)
    return replace(fresh, facts=facts)


def _is_silent(snapshot: Snapshot, name: str) -> bool:
    fact = snapshot.measured.classes.get(name)
    return fact is None or fact.value is None


def _problem(inputs: PlanningInputs, snapshot: Snapshot, memory: Memory) -> Problems:
    """The problem of these inputs; the one before where they are the same."""
    refused = unsupported(snapshot)
    made_of = _canonical(inputs) + refused
    if memory.problems.made_of != made_of:
        memory.problems = Problems(made_of, *_built(inputs, refused))
    return memory.problems


def _built(inputs: PlanningInputs, refused: str) -> tuple[Problem | None, str]:
    if refused:
        return None, refused
    try:
        return inputs.problem(), ""
    except SolverError as error:
        return None, str(error)


def _canonical(inputs: PlanningInputs) -> str:
    """Text that is the same exactly where the problem is; metadata that no plan depends on is left out."""
    wire = encode_inputs(inputs)
    wire["fleet"] = wire["fleet"]["spec"]
    wire["classes"] = [[c["metadata"]["name"], c["metadata"].get("annotations"), c["spec"]] for c in wire["classes"]]
    return json.dumps(wire, sort_keys=True)
