"""Planning inputs and plans as JSON, for the pipe between the controller and a solver process.

Inputs and outputs: ``PlanningInputs`` and one JSON value; arrays are lists, and every float comes back to the last
bit. What is encoded and decoded again makes the same plan, byte for byte. Pure.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.inventory import ExcludedGpus, ExclusionReason, Inventory
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.problem import PlanningInputs
from kvplan_solver.instance import GroupPlacement, NodeInput

Json = dict[str, Any]


def encode_inputs(inputs: PlanningInputs) -> Json:
    """The inputs as a JSON value; statuses, which no plan depends on, stay behind."""
    return {
        "fleet": inputs.fleet.model_copy(update={"status": type(inputs.fleet.status)()}).to_wire(),
        "classes": [c.model_copy(update={"status": type(c.status)()}).to_wire() for c in inputs.classes],
        "inventory": _encode_inventory(inputs.inventory),
        "facts": {name: _encode_facts(facts) for name, facts in inputs.facts.items()},
        "measured": {name: asdict(measured) for name, measured in inputs.measured.items()},
        "remarks": list(inputs.remarks),
    }


def decode_inputs(value: Mapping[str, Any]) -> PlanningInputs:
    """The inputs that a JSON value holds."""
    return PlanningInputs(
        fleet=ServingFleet.model_validate(value["fleet"]),
        classes=tuple(RequestClass.model_validate(c) for c in value["classes"]),
        inventory=_decode_inventory(value["inventory"]),
        facts={name: _decode_facts(facts) for name, facts in value["facts"].items()},
        measured={name: Measurement(**measured) for name, measured in value["measured"].items()},
        remarks=tuple(value["remarks"]),
    )


def _encode_inventory(inventory: Inventory) -> Json:
    return {
        "nodes": [asdict(node) for node in inventory.nodes],
        "excluded": [asdict(excluded) for excluded in inventory.excluded],
        "running": [asdict(group) for group in inventory.running],
        "groupsMaySpan": inventory.groups_may_span,
    }


def _decode_inventory(value: Mapping[str, Any]) -> Inventory:
    return Inventory(
        nodes=tuple(NodeInput(**node) for node in value["nodes"]),
        excluded=tuple(ExcludedGpus(**{**e, "reason": ExclusionReason(e["reason"])}) for e in value["excluded"]),
        running=tuple(GroupPlacement(group["configuration"], tuple(group["stages"])) for group in value["running"]),
        groups_may_span=bool(value["groupsMaySpan"]),
    )


def _encode_facts(facts: ClassFacts) -> Json:
    return {f.name: _plain(getattr(facts, f.name)) for f in fields(facts)}


def _plain(value: Any) -> Any:
    """Numpy's numbers and arrays as JSON's."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _decode_facts(value: Mapping[str, Any]) -> ClassFacts:
    lengths = value["output_lengths"]
    return ClassFacts(**{**value, "output_lengths": None if lengths is None else np.array(lengths, dtype=np.float64)})
