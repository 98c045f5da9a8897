"""From objects and measurements to one planning problem: the solver's instance and all it was made from.

Inputs: a ServingFleet, RequestClasses, an ``Inventory``, ``ClassFacts`` by class, measurements by
configuration. Output: a frozen ``Problem``. What the spec says beats what was measured; what neither knows
is an error that names object, field and remedy. Pure: no I/O, no clock; the same inputs give the same
instance, whatever the order of classes and nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.class_inputs import BuiltClass, build_class
from kvplan_operator.model.configuration_inputs import Candidates, candidates
from kvplan_operator.model.facts import ClassFacts, facts_from_config_maps, facts_from_workloads
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.number_source import NumberSource, Origin, configuration_sources
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.selectors import selects
from kvplan_solver.budget import ceil_to_block
from kvplan_solver.errors import Finding, InvalidInput
from kvplan_solver.instance import Ambiguity, ClassInput, Instance
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.packing import most_groups
from kvplan_solver.speed_curve import SpeedCurve

__all__ = [
    "MOST_GROUPS", "ClassFacts", "NumberSource", "Origin", "PlanningInputs", "Problem", "belongs",
    "build_problem", "classes_of", "facts_from_config_maps", "facts_from_workloads", "left_out_classes",
]  # fmt: skip

MOST_GROUPS = 1_024
"""Groups of one configuration that a RoutingPlan can list; no plan is made with more."""


@dataclass(frozen=True, eq=False)
class PlanningInputs:
    """What a problem is built from, kept together so that a what-if can change it.

    Attributes:
        fleet: the fleet.
        classes: RequestClasses of any fleet; those that belong are picked.
        inventory: its GPUs.
        facts: measurements by class name.
        measured: measurements by configuration name.
        remarks: what a reader must know about what was given and not used, a sentence each.
    """

    fleet: ServingFleet
    classes: tuple[RequestClass, ...]
    inventory: Inventory
    facts: Mapping[str, ClassFacts] = field(default_factory=dict)
    measured: Mapping[str, Measurement] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def problem(self) -> "Problem":
        """The problem these inputs make; raises what ``build_problem`` raises."""
        return build_problem(
            self.fleet, self.classes, self.inventory, self.facts, measured=self.measured, remarks=self.remarks
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """One planning problem.

    Attributes:
        fleet: the fleet.
        classes: its RequestClasses by name, in the order of ``instance.classes``.
        inventory: its GPUs.
        instance: what the solver gets, with speeds at an assumed batch.
        curves: speeds over the batch by configuration name.
        sources: where every input number came from.
        unusable: configurations that cannot run, with the reason.
        warnings: what a reader must know, a sentence each.
        inputs: what it was built from.
    """

    fleet: ServingFleet
    classes: tuple[RequestClass, ...]
    inventory: Inventory
    instance: Instance
    curves: Mapping[str, SpeedCurve]
    sources: tuple[NumberSource, ...]
    unusable: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    inputs: PlanningInputs


def build_problem(
    fleet: ServingFleet,
    classes: Sequence[RequestClass],
    inventory: Inventory,
    facts: Mapping[str, ClassFacts],
    *,
    measured: Mapping[str, Measurement] | None = None,
    remarks: Sequence[str] = (),
) -> Problem:
    """The planning problem of a fleet.

    Args:
        fleet: what is served and where.
        classes: RequestClasses; those that the fleet's ``classes.selector`` does not match are left out.
        inventory: GPUs and running groups.
        facts: measurements by class name; absent classes were not measured.
        measured: measurements by configuration name.
        remarks: warnings about what was given and not used, see ``left_out_classes``; shown first.

    Raises:
        InvalidInput: no class, no GPU, no configuration that can run, or a number nobody knows.
    """
    inputs = PlanningInputs(fleet, tuple(classes), inventory, facts, measured or {}, tuple(remarks))
    own = classes_of(fleet, classes)
    _check_gpus(fleet, inventory)
    built = [build_class(c, fleet.spec, facts.get(c.metadata.name, ClassFacts())) for c in own]
    ambiguity = fleet.spec.uncertainty.ambiguity
    block = fleet.spec.engine.block_tokens
    reservation = mean_reservation_tokens([b.input for b in built], ambiguity, block)
    found = candidates(fleet, inventory, inputs.measured, reservation)
    instance = _instance(fleet, built, found, inventory)
    capped = {k.name for k, z in zip(instance.configurations, most_groups(instance), strict=True) if z > MOST_GROUPS}
    return Problem(
        fleet=fleet,
        classes=own,
        inventory=inventory,
        instance=replace(instance, max_groups=MOST_GROUPS) if capped else instance,
        curves=found.curves,
        sources=_sources(built, found),
        unusable=found.unusable,
        warnings=(*remarks, *_warnings(built, found), *map(_capped, sorted(capped))),
        inputs=inputs,
    )


def classes_of(fleet: ServingFleet, classes: Sequence[RequestClass]) -> tuple[RequestClass, ...]:
    """The classes of a fleet, by name: those in its namespace that its selector matches.

    Raises:
        InvalidInput: none belongs to it.
    """
    own = [c for c in classes if belongs(c, fleet)]
    if not own:
        selector = fleet.spec.classes.selector
        asked = f"{FLEET_LABEL}={fleet.metadata.name}" if selector is None else "what spec.classes.selector asks"
        seen = ", ".join(f"{c.metadata.namespace}/{c.metadata.name}" for c in classes) or "none"
        remedy = f"label a RequestClass in namespace {fleet.metadata.namespace} with {asked}; given were {seen}"
        found = Finding("selects no RequestClass")
        raise InvalidInput(f"ServingFleet {fleet.metadata.name}", "spec.classes", found, remedy)
    return tuple(sorted(own, key=lambda c: c.metadata.name))


def belongs(request_class: RequestClass, fleet: ServingFleet) -> bool:
    """Whether a class is in the fleet's namespace and its selector matches."""
    metadata, selector = request_class.metadata, fleet.spec.classes.selector
    if metadata.namespace != fleet.metadata.namespace:
        return False
    if selector is None:
        return metadata.labels.get(FLEET_LABEL) == fleet.metadata.name
    return selects(selector, metadata.labels)


def left_out_classes(classes: Sequence[RequestClass], fleets: Sequence[ServingFleet]) -> tuple[str, ...]:
    """A sentence for every RequestClass that belongs to none of the fleets."""
    return tuple(
        f"RequestClass {c.metadata.namespace}/{c.metadata.name} is left out: it belongs to no fleet given; "
        f"label it {FLEET_LABEL}=<fleet> in the fleet's namespace, or match spec.classes.selector"
        for c in classes
        if not any(belongs(c, fleet) for fleet in fleets)
    )


def mean_reservation_tokens(classes: Sequence[ClassInput], ambiguity: Ambiguity, block_tokens: int) -> float:
    """r̄: each class's own best reservation at its mean prompt, in whole blocks, weighted by its rate; tokens."""
    orders = (robust_order(c, ambiguity).output_tokens for c in classes)
    held = [ceil_to_block(c.input_tokens_mean + eta, block_tokens) for c, eta in zip(classes, orders, strict=True)]
    rates = np.array([c.arrival_rate for c in classes])
    if rates.sum() <= 0:
        return float(np.mean(held))
    return float(rates @ np.array(held, dtype=np.float64) / rates.sum())


def _check_gpus(fleet: ServingFleet, inventory: Inventory) -> None:
    if inventory.nodes:
        return
    why = "; ".join(f"{e.node}: {e.reason} ({e.message})" for e in inventory.excluded[:8])
    remedy = f"give nodes with free GPUs. Left out: {why}" if why else "give the Nodes the fleet may use"
    raise InvalidInput(f"ServingFleet {fleet.metadata.name}", "spec.nodes", Finding("has no usable GPU"), remedy)


def _instance(fleet: ServingFleet, built: Sequence[BuiltClass], found: Candidates, inventory: Inventory) -> Instance:
    spec = fleet.spec
    names = {k.name for k in found.inputs}
    return Instance(
        classes=tuple(b.input for b in built),
        configurations=found.inputs,
        nodes=inventory.nodes,
        headroom_milli=spec.objective.headroom_milli,
        gpu_second_cost=float(spec.objective.gpu_second_weight),
        idle_gpu_second_cost=float(spec.objective.idle_gpu_second_weight),
        switching_cost=float(spec.objective.switching_weight),
        ambiguity=spec.uncertainty.ambiguity,
        block_tokens=spec.engine.block_tokens,
        max_gpus=spec.nodes.max_gpus,
        min_gpus=spec.nodes.min_gpus or 0,
        running=tuple(group for group in inventory.running if group.configuration in names),
    )


def _sources(built: Sequence[BuiltClass], found: Candidates) -> tuple[NumberSource, ...]:
    of_configurations = (row for resolved in found.resolved for row in configuration_sources(resolved))
    return (*of_configurations, *(row for b in built for row in b.sources))


def _warnings(built: Sequence[BuiltClass], found: Candidates) -> tuple[str, ...]:
    unusable = (f"configuration {name} is left out: {reason}" for name, reason in found.unusable)
    return (*unusable, *(warning for b in built for warning in b.warnings))


def _capped(configuration: str) -> str:
    return (
        f"configuration {configuration}: the nodes could hold more groups than the {MOST_GROUPS} that a plan can list; "
        "plan and lower bound are those of at most so many"
    )
