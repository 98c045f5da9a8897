"""Builders of what the planner reads: fleets, classes, nodes and pods, small and fully specified."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.manifests import Manifests, load_manifests
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.inventory import Inventory, inventory_from_objects
from kvplan_operator.model.problem import PlanningInputs, build_problem
from kvplan_operator.plan.planner import Planned, make_plan, solver_options
from kvplan_solver.instance import GroupPlacement, NodeInput

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "manifests" / "samples"

Object = dict[str, Any]

LENGTHS = [
    {"probabilityMilli": 0, "tokens": 10},
    {"probabilityMilli": 500, "tokens": 100},
    {"probabilityMilli": 900, "tokens": 250},
    {"probabilityMilli": 1000, "tokens": 400},
]


def configuration(name: str, gpus: int, **rest: Any) -> Object:
    """A configuration with numbers of its own: twice the GPUs, twice the speed."""
    numbers = {
        "kvCapacityTokens": 64_000 * gpus,
        "prefillTokensPerSecond": 10_000 * gpus,
        "decodeMicrosecondsPerToken": 20_000 // gpus,
        "maxSequences": 16,
    }
    return {"name": name, "tensorParallel": gpus} | numbers | rest


def fleet(**spec: Any) -> ServingFleet:
    """A fleet of two configurations; keywords replace parts of its spec."""
    plain: Object = {
        "model": {"name": "example/model"},
        "nodes": {"selector": {"matchLabels": {"pool": "serving"}}},
        "configurations": [configuration("tp1", 1), configuration("tp2", 2)],
    }
    return ServingFleet.model_validate({"metadata": {"name": "demo"}, "spec": plain | spec})


def request_class(name: str, **spec: Any) -> RequestClass:
    """A class of the fleet ``demo``; keywords replace parts of its spec."""
    plain: Object = {
        "slo": {"latencyMilliseconds": 10_000},
        "tokens": {"input": 500, "inputP95": 1000, "inputMax": 2000, "sharedPrefix": 64, "maxOutput": 500},
        "arrivals": {"requestsPerSecondMilli": 4000},
        "outputLengths": {"quantiles": LENGTHS},
    }
    metadata = {"name": name, "labels": {"kvplan.dev/fleet": "demo"}}
    return RequestClass.model_validate({"metadata": metadata, "spec": plain | spec})


def inventory(*sizes: int, product: str = "", running: tuple[GroupPlacement, ...] = ()) -> Inventory:
    """Nodes a, b, c … with so many free GPUs."""
    nodes = tuple(NodeInput(chr(ord("a") + n), size, product) for n, size in enumerate(sizes))
    return Inventory(nodes, (), running)


def inputs(**parts: Any) -> PlanningInputs:
    """Two classes on two nodes of four GPUs; keywords replace fields of the inputs."""
    plain: Object = {
        "fleet": fleet(),
        "classes": (request_class("chat"), request_class("code")),
        "inventory": inventory(4, 4),
    }
    return PlanningInputs(**(plain | parts))


def plan(made_of: PlanningInputs) -> Planned:
    """Planned without a clock."""
    return make_plan(made_of.problem(), solver_options(made_of.fleet))


@cache
def demo() -> Planned:
    """The plan of ``inputs()``."""
    return plan(inputs())


@cache
def sample_manifests() -> Manifests:
    """The sample fleet, its classes and its nodes."""
    files = [SAMPLES / f"{name}.yaml" for name in ("fleet", "classes", "nodes")]
    return load_manifests(document for file in files for document in yaml.safe_load_all(file.read_text()))


@cache
def sample() -> Planned:
    """The plan of the sample fleet."""
    manifests = sample_manifests()
    sample_fleet = manifests.fleets[0]
    found = inventory_from_objects(manifests.nodes, manifests.pods, sample_fleet)
    problem = build_problem(sample_fleet, manifests.classes, found, {})
    return make_plan(problem, solver_options(sample_fleet))


def node(name: str = "a", gpus: int | str = 8, **changes: Any) -> Object:
    """A ready node of the pool ``serving``; ``labels``, ``spec``, ``allocatable``, ``conditions`` replace."""
    labels = {"pool": "serving", "nvidia.com/gpu.product": "NVIDIA-H200"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": changes.get("labels", labels)},
        "spec": changes.get("spec", {}),
        "status": {
            "allocatable": changes.get("allocatable", {"nvidia.com/gpu": str(gpus), "cpu": "8"}),
            "conditions": changes.get("conditions", [{"type": "Ready", "status": "True"}]),
        },
    }


def pod(name: str, on: str = "a", gpus: int = 1, **changes: Any) -> Object:
    """A running pod that asks for GPUs; ``labels``, ``spec``, ``phase``, ``metadata`` add to it."""
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    metadata = {"name": name, "namespace": "default", "labels": changes.get("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | changes.get("metadata", {}),
        "spec": {"nodeName": on, "containers": [container]} | changes.get("spec", {}),
        "status": {"phase": changes.get("phase", "Running")},
    }


def own_pod(name: str, on: str = "a", gpus: int = 1, group: str = "tp1", **changes: Any) -> Object:
    """A pod of a group of the fleet ``demo``."""
    labels = {"kvplan.dev/fleet": "demo", "kvplan.dev/configuration": group} | changes.pop("labels", {})
    return pod(name, on, gpus, labels=labels, **changes)
