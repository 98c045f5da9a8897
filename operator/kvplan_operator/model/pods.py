"""What pods hold: their GPU requests, and the groups of a fleet that run already.

Inputs: core/v1 Pods as plain mappings. Outputs: GPUs per pod and ``GroupPlacement`` values. A pod counts
until it is terminal, Terminating included, because its GPUs come back only then. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvplan_operator.api.labels import CONFIGURATION_LABEL, FLEET_LABEL
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import GroupPlacement

Object = Mapping[str, Any]

TERMINAL_PHASES = ("Succeeded", "Failed")
WORKER_SET_KEY_LABELS = ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index")
"""Labels that say together which group a LeaderWorkerSet's pod belongs to."""
WORKER_INDEX_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"


def labels_of(item: Object) -> Mapping[str, str]:
    """Labels of any object, empty when it has none."""
    return item.get("metadata", {}).get("labels") or {}


def name_of(item: Object) -> str:
    """Name of any object."""
    return str(item.get("metadata", {}).get("name", ""))


def node_of(pod: Object) -> str:
    """Node the pod is bound to, empty while it waits for one."""
    return str(pod.get("spec", {}).get("nodeName") or "")


def is_terminal(pod: Object) -> bool:
    """Whether the pod has ended and holds nothing any more."""
    return pod.get("status", {}).get("phase") in TERMINAL_PHASES


def is_terminating(pod: Object) -> bool:
    """Whether the pod was told to go."""
    return bool(pod.get("metadata", {}).get("deletionTimestamp"))


def belongs_to(pod: Object, fleet: str, namespace: str) -> bool:
    """Whether the pod is part of a group of this fleet."""
    labels = labels_of(pod)
    same_namespace = pod.get("metadata", {}).get("namespace", "default") == namespace
    return same_namespace and labels.get(FLEET_LABEL) == fleet and CONFIGURATION_LABEL in labels


def requested_gpus(pod: Object, resource: str) -> int:
    """GPUs a pod holds: what its containers ask for together, or an init container if that is more.

    Sidecars (init containers that restart always) run beside the containers and add up.

    Raises:
        InvalidInput: a request that is no whole number.
    """
    spec = pod.get("spec", {})
    subject = f"Pod {name_of(pod)}"
    whole_pod = _quantity(subject, spec.get("resources", {}), resource)
    containers = sum(_requests(subject, spec.get("containers", ()), resource))
    initial = spec.get("initContainers", ())
    sidecars = sum(_requests(subject, [c for c in initial if _is_sidecar(c)], resource))
    largest = max(_requests(subject, [c for c in initial if not _is_sidecar(c)], resource), default=0)
    return max(whole_pod, containers + sidecars, largest + sidecars)


def whole_gpus(subject: str, field: str, value: object) -> int:
    """A GPU quantity as an integer.

    Raises:
        InvalidInput: anything but a whole number of 0 or more.
    """
    text = str(value)
    if not text.isdecimal():
        raise InvalidInput(subject, field, value, "GPUs come in whole numbers: write an integer of 0 or more")
    return int(text)


def running_groups(pods: Iterable[Object], stages: Mapping[str, int]) -> tuple[GroupPlacement, ...]:
    """Placements of the groups that the given pods make.

    Args:
        pods: bound pods of the fleet.
        stages: pipeline stages by configuration name; pods of other configurations are left out.

    Returns:
        Sorted; a group whose pods are not all there counts only if its stages can be told.
    """
    members: dict[tuple[str, ...], list[Object]] = {}
    for pod in pods:
        if labels_of(pod)[CONFIGURATION_LABEL] in stages:
            members.setdefault(_group_key(pod), []).append(pod)
    placed = (_placement(key[0], parts, stages[key[0]]) for key, parts in members.items())
    return tuple(sorted(placement for placement in placed if placement is not None))


def _group_key(pod: Object) -> tuple[str, ...]:
    """Configuration and what tells groups apart: the pod's own name, unless a worker set has several."""
    labels = labels_of(pod)
    shared = tuple(labels.get(label, "") for label in WORKER_SET_KEY_LABELS)
    return (labels[CONFIGURATION_LABEL], *(shared if all(shared) else (name_of(pod),)))


def _placement(configuration: str, pods: Sequence[Object], stages: int) -> GroupPlacement | None:
    if stages % len(pods):
        return None
    ordered = sorted(pods, key=lambda pod: (int(labels_of(pod).get(WORKER_INDEX_LABEL, 0)), name_of(pod)))
    per_pod = stages // len(pods)
    return GroupPlacement(configuration, tuple(node_of(pod) for pod in ordered for _ in range(per_pod)))


def _is_sidecar(container: Object) -> bool:
    return container.get("restartPolicy") == "Always"


def _requests(subject: str, containers: Iterable[Object], resource: str) -> list[int]:
    return [_quantity(subject, container.get("resources", {}), resource) for container in containers]


def _quantity(subject: str, resources: Object, resource: str) -> int:
    """A request; extended resources may be written as limits alone, which then are the requests."""
    for part in ("requests", "limits"):
        if resource in (resources.get(part) or {}):
            return whole_gpus(subject, f"resources.{part}[{resource}]", resources[part][resource])
    return 0
