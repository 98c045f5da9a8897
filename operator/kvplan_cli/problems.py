"""From manifests and traces to a planning problem: the one path that every planning command takes.

Inputs: ``Manifests``, the fleet, ``--trace`` texts. Output: a ``Problem``, or the classes alone. Reads the
traces. What the manifests state beats what the traces measure (01-api); ``unused_measurements`` says where.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kvplan_cli.errors import CommandError
from kvplan_cli.fit_inputs import FitInputs, fit_all, split_sources
from kvplan_cli.output import note
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import API_VERSION
from kvplan_operator.api.manifests import Manifests
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.class_inputs import build_class
from kvplan_operator.model.facts import ClassFacts, facts_from_config_maps, facts_from_workloads
from kvplan_operator.model.fitting import FitOptions
from kvplan_operator.model.inventory import inventory_from_objects
from kvplan_operator.model.number_source import NumberSource, Origin
from kvplan_operator.model.problem import Problem, build_problem, classes_of, left_out_classes
from kvplan_solver.instance import ClassInput

MOST_CLASSES = 128
"""RequestClasses of one fleet: as many as a RoutingPlan may hold."""


def problem_of(manifests: Manifests, fleet: ServingFleet, traces: Sequence[str]) -> Problem:
    """The planning problem of a fleet.

    Raises:
        CommandError: no Node was given, there are more classes than a plan can hold, or a trace is for a class that
            the fleet does not have.
        TraceError: a trace that cannot be used.
        InvalidInput: what ``build_problem`` refuses.
    """
    if not manifests.nodes:
        raise CommandError("input", "no Node among the files", "add them with: kubectl get nodes -o yaml")
    inventory = inventory_from_objects(manifests.nodes, manifests.pods, fleet)
    facts = facts_of(manifests, fleet, traces)
    problem = build_problem(fleet, manifests.classes, inventory, facts, remarks=not_used(manifests))
    for line in unused_measurements(problem.sources, traces):
        note(line)
    return problem


def not_used(manifests: Manifests) -> tuple[str, ...]:
    """Classes and fleets among the files that nothing can come of: no fleet has them, or their API is another."""
    foreign = (
        f"{kind} {name} is left out: its apiVersion is {version}, use {API_VERSION}"
        for kind, name, version in map(_identity, manifests.others)
        if kind in ("RequestClass", "ServingFleet")
    )
    return (*left_out_classes(manifests.classes, manifests.fleets), *foreign)


def _identity(document: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return str(document["kind"]), str(name), str(document["apiVersion"])


def class_inputs(manifests: Manifests, fleet: ServingFleet, traces: Sequence[str]) -> list[ClassInput]:
    """The classes of a fleet as the solver takes them; no node is needed."""
    facts = facts_of(manifests, fleet, traces)
    own = _own_classes(manifests, fleet)
    return [build_class(c, fleet.spec, facts.get(c.metadata.name, ClassFacts())).input for c in own]


def facts_of(manifests: Manifests, fleet: ServingFleet, traces: Sequence[str]) -> Mapping[str, ClassFacts]:
    """Measurements by class: from the traces, completed by the ConfigMaps that the classes name."""
    own = _own_classes(manifests, fleet)
    held = facts_from_config_maps(own, manifests.config_maps)
    traced = traced_facts(own, traces)
    return held | {name: found.completed_by(held.get(name, ClassFacts())) for name, found in traced.items()}


def traced_facts(own: Sequence[RequestClass], traces: Sequence[str]) -> dict[str, ClassFacts]:
    """Measurements by class from ``--trace`` texts.

    Raises:
        CommandError: a trace is for a class that the fleet does not have.
        TraceError: a trace that cannot be used.
    """
    traced = _traced(traces)
    names = [c.metadata.name for c in own]
    for name in sorted(set(traced) - set(names)):
        known = ", ".join(names) or "none"
        raise CommandError("--trace", f"the fleet has no class {name!r}", f"its classes are {known}")
    return traced


def _own_classes(manifests: Manifests, fleet: ServingFleet) -> tuple[RequestClass, ...]:
    """The fleet's classes, refused where no plan could hold them all."""
    own = classes_of(fleet, manifests.classes)
    if len(own) > MOST_CLASSES:
        subject = f"ServingFleet {fleet.metadata.name}"
        problem = f"{len(own)} RequestClasses belong to it, and a plan holds at most {MOST_CLASSES}"
        raise CommandError(subject, problem, "join classes, or split them between fleets")
    return own


def unused_measurements(sources: Sequence[NumberSource], traces: Sequence[str]) -> list[str]:
    """One line per traced class on what its manifest states, so that the trace was not asked."""
    lines = []
    for name in sorted({text.partition("=")[0] for text in traces}):
        stated = [s.detail for s in sources if s.subject == f"class {name}" and _is_stated(s)]
        if stated:
            lines.append(f"class {name}: the manifest's {', '.join(stated)} beat the trace; remove them to use it")
    return lines


def _is_stated(source: NumberSource) -> bool:
    return source.source is Origin.SPEC and source.detail.startswith("spec.")


def _traced(traces: Sequence[str]) -> dict[str, ClassFacts]:
    if not traces:
        return {}
    workloads, remarks = fit_all(FitInputs(traces=split_sources("--trace", traces)), FitOptions())
    for subject, remark in remarks:
        note(f"{subject}: {remark}")
    return facts_from_workloads(workloads)
