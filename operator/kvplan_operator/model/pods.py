"""What pods hold: their GPU requests, and the groups of a fleet that run already.

Inputs: core/v1 Pods as plain mappings. Outputs: GPUs per pod and ``GroupPlacement`` values. A pod counts
until it is terminal, Terminating included, because its GPUs come back only then. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import CONFIGURATION_LABEL, FLEET_LABEL
from kvplan_operator.model.watched import Watched
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import GroupPlacement

Object = Mapping[str, Any]

TERMINAL_PHASES = ("Succeeded", "Failed")
WORKER_SET_KEY_LABELS = ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index")
"""Labels that say together which group a LeaderWorkerSet's pod belongs to."""
TEMPLATE_HASH_LABEL = "pod-template-hash"
WORKER_INDEX_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"


def part(item: Object, name: str) -> Object:
    """A mapping inside an object, empty where it is absent or null."""
    value = item.get(name)
    return value if type(value) is dict or isinstance(value, Mapping) else {}  # the first is the usual one, and fast


def parts(item: Object, name: str) -> Sequence[Object]:
    """The mappings of a list inside an object, none where it is absent or null."""
    value = item.get(name)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []


def labels_of(item: Object) -> Mapping[str, str]:
    """Labels of any object, empty when it has none."""
    return part(part(item, "metadata"), "labels")


def name_of(item: Object) -> str:
    """Name of any object."""
    return str(part(item, "metadata").get("name") or "")


def node_of(pod: Object) -> str:
    """Node the pod is bound to, empty while it waits for one."""
    return str(part(pod, "spec").get("nodeName") or "")


def ready_condition(item: Object) -> Object:
    """The condition Ready of a pod or node, empty where it has none yet."""
    conditions = parts(part(item, "status"), "conditions")
    return next((condition for condition in conditions if condition.get("type") == "Ready"), {})


def is_ready(item: Object) -> bool:
    """Whether a pod or node says that it is Ready."""
    return ready_condition(item).get("status") == "True"


def is_terminal(pod: Object) -> bool:
    """Whether the pod has ended and holds nothing any more."""
    return part(pod, "status").get("phase") in TERMINAL_PHASES


def is_terminating(pod: Object) -> bool:
    """Whether the pod was told to go."""
    return bool(part(pod, "metadata").get("deletionTimestamp"))


def configuration_of(pod: Object, fleet: ServingFleet) -> str | None:
    """The configuration whose group the pod is part of; None for pods outside the fleet.

    Groups that kvplan created carry its labels; those of an adopted Deployment are told by their ReplicaSet,
    which is named after the Deployment and the hash of the pod's template.
    """
    metadata = part(pod, "metadata")
    if metadata.get("namespace", "default") != fleet.metadata.namespace:
        return None
    labels: Mapping[str, str] = part(metadata, "labels")
    if labels.get(FLEET_LABEL) == fleet.metadata.name and CONFIGURATION_LABEL in labels:
        return labels[CONFIGURATION_LABEL]
    owners = parts(metadata, "ownerReferences")
    replica_sets = {owner.get("name") for owner in owners if owner.get("kind") == "ReplicaSet"}
    for configuration in fleet.spec.configurations:
        template = f"{configuration.deployment}-{labels.get(TEMPLATE_HASH_LABEL)}"
        if configuration.deployment and template in replica_sets:
            return configuration.name
    return None


def requested_gpus(pod: Object, resource: str) -> int:
    """GPUs a pod holds: what its containers ask for together, or an init container if that is more.

    Sidecars (init containers that restart always) run beside the containers and add up.

    Raises:
        InvalidInput: a request that is no whole number.
    """
    if isinstance(pod, Watched):
        return pod.once(resource, lambda: _requested_gpus(pod, resource))
    return _requested_gpus(pod, resource)


def _requested_gpus(pod: Object, resource: str) -> int:
    spec = part(pod, "spec")
    subject = f"Pod {name_of(pod)}"
    whole_pod = _quantity(subject, part(spec, "resources"), resource)
    containers = sum(_requests(subject, parts(spec, "containers"), resource))
    initial = parts(spec, "initContainers")
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


def running_groups(pods: Iterable[Object], fleet: ServingFleet) -> tuple[GroupPlacement, ...]:
    """Placements of the groups that bound pods of a fleet make.

    Returns:
        Sorted; pods of configurations that are no candidates, and groups whose pods are not all there, are
        left out.
    """
    stages = {k.name: k.pipeline_parallel for k in fleet.spec.configurations}
    members: dict[tuple[str, ...], list[Object]] = {}
    for pod in pods:
        configuration = configuration_of(pod, fleet)
        if configuration in stages:
            members.setdefault((configuration, *_group_key(pod)), []).append(pod)
    placed = (_placement(key[0], found, stages[key[0]]) for key, found in members.items())
    return tuple(sorted(placement for placement in placed if placement is not None))


def _group_key(pod: Object) -> tuple[str, ...]:
    """What tells groups of one configuration apart: the pod's name, unless a worker set has several pods."""
    labels = labels_of(pod)
    shared = tuple(labels.get(label, "") for label in WORKER_SET_KEY_LABELS)
    return shared if all(shared) else (name_of(pod),)


def _placement(configuration: str, pods: Sequence[Object], stages: int) -> GroupPlacement | None:
    if stages % len(pods):
        return None
    ordered = sorted(pods, key=lambda pod: (int(labels_of(pod).get(WORKER_INDEX_LABEL, 0)), name_of(pod)))
    per_pod = stages // len(pods)
    return GroupPlacement(configuration, tuple(node_of(pod) for pod in ordered for _ in range(per_pod)))


def _is_sidecar(container: Object) -> bool:
    return container.get("restartPolicy") == "Always"


def _requests(subject: str, containers: Iterable[Object], resource: str) -> list[int]:
    return [_quantity(subject, part(container, "resources"), resource) for container in containers]


def _quantity(subject: str, resources: Object, resource: str) -> int:
    """A request; extended resources may be written as limits alone, which then are the requests."""
    for kind in ("requests", "limits"):
        if resource in part(resources, kind):
            return whole_gpus(subject, f"resources.{kind}[{resource}]", resources[kind][resource])
    return 0
