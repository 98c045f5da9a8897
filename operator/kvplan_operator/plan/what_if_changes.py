"""What each kind of what-if does to the planner's inputs.

Inputs: ``PlanningInputs`` and one ``Change``. Outputs: changed copies; objects that people wrote are never
touched. Pure.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from kvplan_operator.api.common import Quantile
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass, RequestClassSpec
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.problem import PlanningInputs, classes_of
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import NodeInput
from kvplan_solver.units import from_milli, to_milli


class Topic(StrEnum):
    """What a change is about."""

    GPUS = "gpus"
    RATE = "rate"
    SLO = "slo"
    LENGTHS = "lengths"
    RATIO = "ratio"
    CONFIGURATION = "configuration"


class Kind(StrEnum):
    """How the value is meant."""

    SET = "set"
    ADD = "add"
    TIMES = "times"
    OFF = "off"


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        topic: what it is about.
        name: the class or configuration, empty for GPUs.
        kind: how the value is meant.
        value: GPUs, requests per second, seconds, a factor or a ratio.
        text: as it was written.
    """

    topic: Topic
    name: str
    kind: Kind
    value: float
    text: str


LARGEST: dict[Topic, tuple[int, str]] = {
    Topic.GPUS: (4_096, "GPUs"),
    Topic.RATE: (1_000_000, "requests per second, or as a factor"),
    Topic.SLO: (31_536_000, "seconds, which is a year"),
    Topic.LENGTHS: (1_000_000, "times the lengths"),
    Topic.RATIO: (1_000_000, "unused tokens"),
}
"""The largest value of each topic with its unit: what the API takes, and for GPUs what is planned in seconds."""


_SHOWN = 80
"""Characters of a change that a message repeats."""


def bounded(change: Change) -> Change:
    """The change itself.

    Raises:
        InvalidInput: its value is beyond ``LARGEST``.
    """
    limit, unit = LARGEST.get(change.topic, (0, ""))
    if abs(change.value) > limit:
        raise _refuse(change, f"use at most {limit} {unit}")
    return change


def _refuse(change: Change, remedy: str) -> InvalidInput:
    shown = change.text if len(change.text) <= _SHOWN else f"{change.text[:_SHOWN]}…"
    return InvalidInput("what-if", change.topic.value, shown, remedy)


def gpus(inputs: PlanningInputs, change: Change) -> PlanningInputs:
    """More GPUs come as nodes like the largest; fewer leave from the smallest nodes first.

    A cap on GPUs moves along, since the question is what other hardware would do.
    """
    if not inputs.inventory.nodes:
        raise _refuse(change, "the fleet has no usable node that more GPUs could be like")
    now = inputs.inventory.gpus
    target = int(change.value) if change.kind is Kind.SET else now + int(change.value)
    if target < 1:
        raise _refuse(change, f"leave at least one GPU; the fleet may use {now} now")
    if target > max(now, LARGEST[Topic.GPUS][0]):
        raise _refuse(change, f"use at most {LARGEST[Topic.GPUS][0]} GPUs in all; the fleet may use {now} now")
    nodes = inputs.fleet.spec.nodes
    if nodes.max_gpus is not None:
        moved = nodes.model_copy(update={"max_gpus": max(1, nodes.max_gpus + target - now)})
        inputs = replace(inputs, fleet=_with_spec(inputs, nodes=moved))
    return replace(inputs, inventory=_resized(inputs.inventory, target))


def _with_spec(inputs: PlanningInputs, **parts: object) -> ServingFleet:
    return inputs.fleet.model_copy(update={"spec": inputs.fleet.spec.model_copy(update=parts)})


def _resized(inventory: Inventory, target: int) -> Inventory:
    nodes = _grown(inventory.nodes, target) if target > inventory.gpus else _shrunk(inventory.nodes, target)
    names = {node.name for node in nodes}
    running = tuple(group for group in inventory.running if set(group.stages) <= names)
    return replace(inventory, nodes=nodes, running=running)


def _grown(nodes: tuple[NodeInput, ...], target: int) -> tuple[NodeInput, ...]:
    model = max(nodes, key=lambda node: (node.free_gpus, node.name))
    size = model.free_gpus
    missing = target - sum(node.free_gpus for node in nodes)
    sizes = [size] * (missing // size) + ([missing % size] if missing % size else [])
    added = (NodeInput(f"what-if-{n}", free, model.gpu_product) for n, free in enumerate(sizes, start=1))
    return (*nodes, *added)


def _shrunk(nodes: tuple[NodeInput, ...], target: int) -> tuple[NodeInput, ...]:
    surplus = sum(node.free_gpus for node in nodes) - target
    kept = []
    for node in sorted(nodes, key=lambda node: (node.free_gpus, node.name)):
        taken = min(surplus, node.free_gpus)
        surplus -= taken
        if taken < node.free_gpus:
            kept.append(replace(node, free_gpus=node.free_gpus - taken))
    return tuple(sorted(kept, key=lambda node: node.name))


def rate(inputs: PlanningInputs, change: Change) -> PlanningInputs:
    """The class arrives at another rate."""
    request_class = _class(inputs, change)
    value = change.value
    if change.kind is Kind.TIMES:
        value *= _known_rate(inputs, request_class, change)
        bounded(replace(change, value=value))
    arrivals = request_class.spec.arrivals
    changed = arrivals.model_copy(update={"requests_per_second_milli": to_milli(value)})
    return _with_class(inputs, request_class, change, arrivals=changed)


def _known_rate(inputs: PlanningInputs, request_class: RequestClass, change: Change) -> float:
    milli = request_class.spec.arrivals.requests_per_second_milli
    if milli is not None:
        return from_milli(milli)
    measured = _facts(inputs, request_class).requests_per_second
    if measured is None:
        raise _refuse(change, "its rate is unknown: give a rate per second instead of a factor")
    return measured


def slo(inputs: PlanningInputs, change: Change) -> PlanningInputs:
    """The class is promised another mean latency."""
    request_class = _class(inputs, change)
    milliseconds = to_milli(change.value)
    if milliseconds < 1:
        raise _refuse(change, "use at least 1ms")
    changed = request_class.spec.slo.model_copy(update={"latency_milliseconds": milliseconds})
    return _with_class(inputs, request_class, change, slo=changed)


def lengths(inputs: PlanningInputs, change: Change) -> PlanningInputs:
    """Outputs grow up to maxOutput, where the engine ends them."""
    request_class = _class(inputs, change)
    given = request_class.spec.output_lengths
    if given.quantiles is not None:
        limit = request_class.spec.tokens.max_output
        scaled = tuple(
            Quantile(probability_milli=q.probability_milli, tokens=min(limit, math.ceil(q.tokens * change.value)))
            for q in given.quantiles
        )
        changed = given.model_copy(update={"quantiles": scaled})
        return _with_class(inputs, request_class, change, output_lengths=changed)
    facts = _facts(inputs, request_class)
    if facts.output_lengths is None:
        raise _refuse(change, "its output lengths are unknown: give quantiles, a ConfigMap or a trace")
    longer = replace(facts, output_lengths=facts.output_lengths * change.value)
    return replace(inputs, facts={**inputs.facts, request_class.metadata.name: longer})


def ratio(inputs: PlanningInputs, change: Change) -> PlanningInputs:
    """A token beyond the class's reservation costs another multiple of an unused one."""
    request_class = _class(inputs, change)
    if change.value < 1:
        raise _refuse(change, "use a ratio of at least 1")
    changed = request_class.spec.costs.model_copy(update={"preemption_ratio": int(change.value)})
    return _with_class(inputs, request_class, change, costs=changed)


def configuration(inputs: PlanningInputs, change: Change) -> PlanningInputs:
    """The configuration is no candidate any more."""
    configurations = inputs.fleet.spec.configurations
    kept = tuple(k for k in configurations if k.name != change.name)
    if len(kept) == len(configurations):
        raise _refuse(change, f"the configurations are {', '.join(k.name for k in configurations)}")
    if not kept:
        raise _refuse(change, "it is the only configuration: add another one first")
    return replace(inputs, fleet=_with_spec(inputs, configurations=kept))


def _class(inputs: PlanningInputs, change: Change) -> RequestClass:
    own = classes_of(inputs.fleet, inputs.classes)
    for request_class in own:
        if request_class.metadata.name == change.name:
            return request_class
    raise _refuse(change, f"the classes are {', '.join(c.metadata.name for c in own)}")


def _facts(inputs: PlanningInputs, request_class: RequestClass) -> ClassFacts:
    return inputs.facts.get(request_class.metadata.name, ClassFacts())


def _with_class(inputs: PlanningInputs, request_class: RequestClass, change: Change, **parts: object) -> PlanningInputs:
    spec = request_class.spec.model_copy(update=parts)
    try:
        RequestClassSpec.model_validate(spec.to_wire())
    except ValueError:
        raise _refuse(change, "the API does not take this value: use one within its bounds") from None
    changed = request_class.model_copy(update={"spec": spec})
    classes = tuple(changed if c is request_class else c for c in inputs.classes)
    return replace(inputs, classes=classes)
