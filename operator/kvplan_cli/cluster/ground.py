"""The planning problem of a fleet as the cluster has it now.

Inputs: a ``FleetView``, Nodes, Pods and what the classes refer to; a Prometheus where one is named; traces. Output: a
``Problem`` built as the operator builds it: what the spec says, then traces, then Prometheus, then what the statuses
of the classes remember. Reads only.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kvplan_cli.cluster.measuring import measured_by
from kvplan_cli.cluster.reading import FleetView, Object
from kvplan_cli.cluster.session import Session
from kvplan_operator.api.fleet_enums import TemplateKind
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, POD_TEMPLATES, PODS, Resource
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.problem import PlanningInputs, Problem
from kvplan_operator.model.snapshot import ClusterView, Measured, Snapshot
from kvplan_operator.plan.settled import facts_in_status, settled_inputs


async def live_problem(
    session: Session, view: FleetView, prometheus: str = "", traced: Mapping[str, ClassFacts] | None = None
) -> Problem:
    """The problem of a fleet.

    Args:
        session: of the fleet's cluster.
        view: the fleet with its classes and plans.
        prometheus: address to measure with; empty for none.
        traced: measurements by class from traces, which come first.

    Raises:
        CommandError: the Prometheus cannot be used.
        InvalidInput: what ``build_problem`` refuses.
        KubeError: Nodes and Pods of the whole cluster cannot be read.
    """
    around = await _around(session, view)
    measured = await measured_by(prometheus, view, around) if prometheus else Measured()
    return _traced_inputs(traced or {}, _snapshot(view, around, measured)).problem()


def _traced_inputs(traced: Mapping[str, ClassFacts], snapshot: Snapshot) -> PlanningInputs:
    """The operator's inputs, with traces before what was measured."""
    inputs = settled_inputs(snapshot, facts_in_status(snapshot.classes))
    facts = {name: traced.get(name, ClassFacts()).completed_by(found) for name, found in inputs.facts.items()}
    return replace(inputs, facts=facts)


def _snapshot(view: FleetView, around: ClusterView, measured: Measured) -> Snapshot:
    version = str(view.raw["metadata"].get("resourceVersion", ""))
    return Snapshot(time.time(), view.fleet, version, view.classes, view.plans, around, measured)


async def _around(session: Session, view: FleetView) -> ClusterView:
    client = session.client
    nodes, pods = await asyncio.gather(client.list(NODES), client.list(PODS, project=project_pod))
    named = await asyncio.gather(*(client.find(kind, session.namespace, name) for kind, name in _named(view)))
    found = [item for item in named if item is not None]
    return ClusterView(
        nodes=nodes.items,
        pods=pods.items,
        deployments=_of(found, DEPLOYMENTS),
        config_maps={item["metadata"]["name"]: item for item in _of(found, CONFIG_MAPS)},
    )


def _named(view: FleetView) -> Iterator[tuple[Resource, str]]:
    """Objects that the fleet and its classes name."""
    spec = view.fleet.spec
    for configuration in spec.configurations:
        if configuration.deployment:
            yield DEPLOYMENTS, configuration.deployment
    for request_class in view.classes:
        reference = request_class.spec.output_lengths.config_map_ref
        if reference is not None:
            yield CONFIG_MAPS, reference.name
    if spec.engine.template_ref is not None:
        kind = DEPLOYMENTS if spec.engine.template_ref.kind is TemplateKind.DEPLOYMENT else POD_TEMPLATES
        yield kind, spec.engine.template_ref.name


def _of(items: list[Object], kind: Resource) -> tuple[Object, ...]:
    return tuple(item for item in items if item["kind"] == kind.kind)
