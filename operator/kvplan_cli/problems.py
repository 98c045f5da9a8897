"""From manifests and traces to a planning problem: the one path that every planning command takes.

Inputs: ``Manifests``, the fleet, ``--trace`` texts. Output: a ``Problem``, or the classes alone. Reads the
traces. What the manifests state beats what the traces measure (01-api); ``unused_measurements`` says where.
"""

from collections.abc import Mapping, Sequence

from kvplan_cli.errors import CommandError
from kvplan_cli.fit_inputs import FitInputs, fit_all, split_sources
from kvplan_cli.output import note
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.manifests import Manifests
from kvplan_operator.model.class_inputs import build_class
from kvplan_operator.model.facts import ClassFacts, facts_from_config_maps, facts_from_workloads
from kvplan_operator.model.fitting import FitOptions
from kvplan_operator.model.inventory import inventory_from_objects
from kvplan_operator.model.number_source import NumberSource, Origin
from kvplan_operator.model.problem import Problem, build_problem, classes_of
from kvplan_solver.instance import ClassInput


def problem_of(manifests: Manifests, fleet: ServingFleet, traces: Sequence[str]) -> Problem:
    """The planning problem of a fleet.

    Raises:
        CommandError: no Node was given, or a trace is for a class that the fleet does not have.
        TraceError: a trace that cannot be used.
        InvalidInput: what ``build_problem`` refuses.
    """
    if not manifests.nodes:
        raise CommandError("input", "no Node among the files", "add them with: kubectl get nodes -o yaml")
    inventory = inventory_from_objects(manifests.nodes, manifests.pods, fleet)
    problem = build_problem(fleet, manifests.classes, inventory, facts_of(manifests, fleet, traces))
    for line in unused_measurements(problem.sources, traces):
        note(line)
    return problem


def class_inputs(manifests: Manifests, fleet: ServingFleet, traces: Sequence[str]) -> list[ClassInput]:
    """The classes of a fleet as the solver takes them; no node is needed."""
    facts = facts_of(manifests, fleet, traces)
    own = classes_of(fleet, manifests.classes)
    return [build_class(c, fleet.spec, facts.get(c.metadata.name, ClassFacts())).input for c in own]


def facts_of(manifests: Manifests, fleet: ServingFleet, traces: Sequence[str]) -> Mapping[str, ClassFacts]:
    """Measurements by class: from the traces, completed by the ConfigMaps that the classes name."""
    own = classes_of(fleet, manifests.classes)
    held = facts_from_config_maps(own, manifests.config_maps)
    traced = _traced(traces)
    names = [c.metadata.name for c in own]
    for name in sorted(set(traced) - set(names)):
        raise CommandError("--trace", f"the fleet has no class {name!r}", f"use one of {', '.join(names)}")
    return held | {name: found.completed_by(held.get(name, ClassFacts())) for name, found in traced.items()}


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
