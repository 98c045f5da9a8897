"""GPUs that other fleets were promised: groups of their created sets that were asked for and have no bound pod yet.

Inputs: engine sets, Pods, the fleet that looks. Outputs: footprints for the ledger. Counted by node, as every pod of a
created set is pinned: pods that are bound there count as held already. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from kvplan_operator.act.engine_sets import Footprint
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import FLEET_LABEL, NODE_ANNOTATION, SET_LABEL
from kvplan_operator.model.pods import (
    Object,
    is_terminal,
    is_terminating,
    labels_of,
    name_of,
    node_of,
    part,
    requested_gpus,
)

Place = tuple[str, str, str]
"""Namespace and name of a set, and a node."""


def promised_elsewhere(sets: Iterable[Object], pods: Iterable[Object], fleet: ServingFleet) -> tuple[Footprint, ...]:
    """Footprints that sets of other fleets still wait for.

    Args:
        sets: engine sets of any fleets.
        pods: Pods of all namespaces on the nodes that matter.
        fleet: whose own sets are left out.
    """
    others = [item for item in sets if _is_of_another(item, fleet)]
    bound = _bound(pods) if others else Counter[Place]()
    return tuple(filter(None, (_promised(item, bound, fleet.spec.nodes.gpu_resource) for item in others)))


def _is_of_another(item: Object, fleet: ServingFleet) -> bool:
    labels = labels_of(item)
    own = (_namespace(item), labels.get(FLEET_LABEL)) == (fleet.metadata.namespace, fleet.metadata.name)
    return SET_LABEL in labels and not own


def _bound(pods: Iterable[Object]) -> Counter[Place]:
    """Pods that stay where they are bound."""
    return Counter(
        (_namespace(pod), labels_of(pod)[SET_LABEL], node_of(pod))
        for pod in pods
        if SET_LABEL in labels_of(pod) and not is_terminal(pod) and not is_terminating(pod)
    )


def _promised(item: Object, bound: Counter[Place], resource: str) -> Footprint:
    spec = part(item, "spec")
    template = part(spec, "template") or part(part(spec, "leaderWorkerTemplate"), "leaderTemplate")
    gpus, place = requested_gpus(template, resource), (_namespace(item), name_of(item))
    missing = {node: pods - bound[(*place, node)] for node, pods in _asked(item, int(spec.get("replicas", 1)))}
    return {node: pods * gpus for node, pods in missing.items() if pods * gpus > 0}


def _asked(item: Object, replicas: int) -> Iterator[tuple[str, int]]:
    """Pods that were asked for by node."""
    nodes = str(part(part(item, "metadata"), "annotations").get(NODE_ANNOTATION) or "")
    for node, pods in Counter(filter(None, nodes.split(","))).items():
        yield node, pods * replicas


def _namespace(item: Object) -> str:
    return str(part(item, "metadata").get("namespace", "default"))
