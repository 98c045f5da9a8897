"""What of all nodes and pods can matter to one fleet: a look at a small fleet must not cost what the cluster has.

Inputs: the fleet, every node and every pod as the watches keep them. Output: those a look may need. Left out are nodes
that the fleet neither selects nor runs on, and pods that are neither in its namespace nor on such a node, and the
engines of other fleets likewise. Where no node is selected all are kept, so that what is wrong with them can be told.
Pure.
"""

from collections.abc import Iterable, Mapping

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import CONFIGURATION_LABEL, FLEET_LABEL
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.reflector import Key
from kvplan_operator.model.pods import labels_of, name_of, node_of, requested_gpus
from kvplan_operator.model.selectors import selects

Objects = tuple[Object, ...]


def relevant(fleet: ServingFleet, nodes: Iterable[Object], pods: Mapping[Key, Object]) -> tuple[Objects, Objects]:
    """Nodes and pods that can matter to a fleet.

    Args:
        fleet: the fleet.
        nodes: of the cluster.
        pods: of the cluster, by namespace and name.
    """
    near = {key: pod for key, pod in pods.items() if key[0] == fleet.metadata.namespace and not _of_another(pod, fleet)}
    resource = fleet.spec.nodes.gpu_resource
    used = {node_of(pod) for pod in near.values() if node_of(pod) and requested_gpus(pod, resource)}
    kept = _kept_nodes(fleet, tuple(nodes), used)
    there = {name_of(node) for node in kept}
    holders = (pod for key, pod in pods.items() if key not in near and node_of(pod) in there)
    return kept, (*near.values(), *(pod for pod in holders if requested_gpus(pod, resource)))


def _kept_nodes(fleet: ServingFleet, nodes: Objects, used: set[str]) -> Objects:
    selected = {name_of(node) for node in nodes if selects(fleet.spec.nodes.selector, labels_of(node))}
    if not selected:
        return nodes
    return tuple(node for node in nodes if name_of(node) in selected | used)


def _of_another(pod: Object, fleet: ServingFleet) -> bool:
    """Whether the pod is an engine of another fleet; routers may serve several."""
    labels = labels_of(pod)
    return CONFIGURATION_LABEL in labels and labels.get(FLEET_LABEL, fleet.metadata.name) != fleet.metadata.name
