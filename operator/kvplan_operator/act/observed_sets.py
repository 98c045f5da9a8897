"""Every engine set of a fleet with its groups, read off the objects of the cluster.

Inputs: a Snapshot's objects and the published index. Outputs: ``ObservedSet`` values by name. Created sets and their
pods are told by labels, adopted ones by the name in the fleet and the owner of the pods. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

from kvplan_operator.act.engine_sets import SetKind
from kvplan_operator.act.observed_groups import ObservedGroup, ObservedSet
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import CONFIGURATION_LABEL, FLEET_LABEL, NODE_ANNOTATION, SET_LABEL
from kvplan_operator.model.pods import (
    WORKER_INDEX_LABEL,
    WORKER_SET_KEY_LABELS,
    Object,
    configuration_of,
    is_terminal,
    labels_of,
    name_of,
    part,
    parts,
    requested_gpus,
)
from kvplan_operator.model.snapshot import ClusterView


def observed_sets(cluster: ClusterView, fleet: ServingFleet, index: Object | None) -> tuple[ObservedSet, ...]:
    """All engine sets of the fleet, by name.

    Args:
        cluster: the objects.
        fleet: whose.
        index: the published index document, which knows the slots; None where none is published.
    """
    slots = {str(slot.get("podUID")): slot for slot in parts(index or {}, "slots")}
    pods = [pod for pod in cluster.pods if _is_here(pod, fleet) and not is_terminal(pod)]
    by_set: dict[str, list[Object]] = {}
    for pod in pods:
        by_set.setdefault(labels_of(pod).get(SET_LABEL, ""), []).append(pod)
    created = [(SetKind.DEPLOYMENT, item) for item in cluster.deployments if _own(item, fleet)]
    created += [(SetKind.WORKER_SET, item) for item in cluster.worker_sets if _own(item, fleet)]
    found = [_created(item, kind, fleet, by_set.get(name_of(item), ()), slots) for kind, item in created]
    adopted = {k.deployment: k.name for k in fleet.spec.configurations if k.deployment}
    found += [
        _adopted(item, adopted[name_of(item)], fleet, by_set.get("", ()), slots)
        for item in cluster.deployments
        if name_of(item) in adopted and not _own(item, fleet)
    ]
    return tuple(sorted(found, key=lambda seen: seen.name))


def _own(item: Object, fleet: ServingFleet) -> bool:
    return labels_of(item).get(FLEET_LABEL) == fleet.metadata.name and SET_LABEL in labels_of(item)


def _created(
    item: Object, kind: SetKind, fleet: ServingFleet, pods: Sequence[Object], slots: Mapping[str, Object]
) -> ObservedSet:
    spec = part(item, "spec")
    nodes = str(part(part(item, "metadata"), "annotations").get(NODE_ANNOTATION) or "")
    both = part(spec, "leaderWorkerTemplate")
    template = part(spec, "template") or part(both, "leaderTemplate")
    groups = _groups(pods, int(both.get("size", 1)), slots)
    gpus = requested_gpus(template, fleet.spec.nodes.gpu_resource)
    configuration = labels_of(item).get(CONFIGURATION_LABEL, "")
    return ObservedSet(kind, item, configuration, False, tuple(filter(None, nodes.split(","))), gpus, groups)


def _adopted(
    item: Object, configuration: str, fleet: ServingFleet, pods: Sequence[Object], slots: Mapping[str, Object]
) -> ObservedSet:
    own = [pod for pod in pods if configuration_of(pod, fleet) == configuration]
    gpus = requested_gpus(part(part(item, "spec"), "template"), fleet.spec.nodes.gpu_resource)
    return ObservedSet(SetKind.DEPLOYMENT, item, configuration, True, (), gpus, _groups(own, 1, slots))


def _is_here(pod: Object, fleet: ServingFleet) -> bool:
    return bool(part(pod, "metadata").get("namespace", "default") == fleet.metadata.namespace)


def _groups(pods: Iterable[Object], size: int, slots: Mapping[str, Object]) -> tuple[ObservedGroup, ...]:
    """Pods together by group, in order of name."""
    members: dict[str, list[Object]] = {}
    for pod in pods:
        index = labels_of(pod).get(WORKER_SET_KEY_LABELS[1])
        members.setdefault(name_of(pod) if index is None or size == 1 else index, []).append(pod)
    groups = []
    for found in members.values():
        found.sort(key=lambda pod: (int(labels_of(pod).get(WORKER_INDEX_LABEL, 0)), name_of(pod)))
        slot = slots.get(str(part(found[0], "metadata").get("uid") or ""))
        name = None if slot is None else str(slot.get("slot"))
        in_table = slot is not None and slot.get("state") == "serving" and slot.get("weightMilli") != 0
        groups.append(ObservedGroup(tuple(found), size, name, in_table))
    return tuple(sorted(groups, key=lambda group: group.name))
