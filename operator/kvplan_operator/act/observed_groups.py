"""The groups that exist: what one look knows of an engine set and of its groups.

A group is told by its pods: one for a Deployment, all of one group index for a LeaderWorkerSet. Nothing is remembered:
drains stand in an annotation of the pod, slots in the published index. Inputs: objects (``observed_sets`` reads them).
Outputs: facts about a group and a set. Pure.
"""

from dataclasses import dataclass, field
from functools import cached_property

from kvplan_operator.act.commands import ObjectRef, reference
from kvplan_operator.act.engine_sets import Footprint, SetKind, footprint
from kvplan_operator.api.labels import DRAINING_ANNOTATION, REVISION_ANNOTATION
from kvplan_operator.model.instants import instant
from kvplan_operator.model.pods import (
    WORKER_SET_KEY_LABELS,
    Object,
    is_ready,
    is_terminating,
    labels_of,
    name_of,
    node_of,
    part,
    parts,
    ready_condition,
)

FIRST_REVISION = "1"
"""Of a Deployment whose pod template is the one it was created with."""


@dataclass(frozen=True, eq=False)
class ObservedGroup:
    """One group.

    Attributes:
        pods: its pods, the leader first.
        size: pods it has when it is whole.
        slot: its destination in the published index, if it has one.
        in_table: whether that slot may get requests.
    """

    pods: tuple[Object, ...]
    size: int = 1
    slot: str | None = None
    in_table: bool = False

    @property
    def leader(self) -> Object:
        """The pod that listens."""
        return self.pods[0]

    @property
    def name(self) -> str:
        """Name of the leader."""
        return name_of(self.leader)

    @property
    def uid(self) -> str:
        """Identity of the leader."""
        return str(part(self.leader, "metadata").get("uid") or "")

    @property
    def reference(self) -> ObjectRef:
        """The leader as it was seen."""
        return reference(self.leader, "Pod")

    @property
    def number(self) -> int:
        """Index of the group in a LeaderWorkerSet; 0 for a Deployment's."""
        return int(labels_of(self.leader).get(WORKER_SET_KEY_LABELS[1], 0))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Node of each pod; empty text while a pod waits for one."""
        return tuple(node_of(pod) for pod in self.pods)

    @property
    def bound(self) -> bool:
        """Whether all its pods have a node."""
        return len(self.pods) == self.size and all(self.nodes)

    @property
    def leaving(self) -> bool:
        """Whether a pod of it was told to go."""
        return any(is_terminating(pod) for pod in self.pods)

    @cached_property
    def ready(self) -> bool:
        """Whether it is whole and all its pods are Ready."""
        return self.bound and not self.leaving and all(is_ready(pod) for pod in self.pods)

    @cached_property
    def draining_since(self) -> float | None:
        """Since when it is taken out of the table; None while it is not."""
        text = str(part(part(self.leader, "metadata"), "annotations").get(DRAINING_ANNOTATION) or "")
        return float(text) if text.isdecimal() else None

    @property
    def unready_since(self) -> float | None:
        """Since when it is not Ready, as Kubernetes says."""
        times = [ready_condition(pod).get("lastTransitionTime") for pod in self.pods]
        times += [part(pod, "metadata").get("creationTimestamp") for pod in self.pods]
        return next((instant(str(time)) for time in times if time), None)

    @property
    def due(self) -> float | None:
        """When the grace period of a pod that was told to go ends."""
        times = [part(pod, "metadata").get("deletionTimestamp") for pod in self.pods]
        return max((instant(str(time)) for time in times if time), default=None)

    @property
    def trouble(self) -> str:
        """Why a container does not run, with its restarts; empty where nothing says so."""
        for pod in self.pods:
            for container in parts(part(pod, "status"), "containerStatuses"):
                reason = part(part(container, "state"), "waiting").get("reason")
                if reason:
                    return f"{reason}, {container.get('restartCount', 0)} restarts"
        return ""


@dataclass(frozen=True, eq=False)
class ObservedSet:
    """One Deployment or LeaderWorkerSet of the fleet.

    Attributes:
        kind: of the object.
        item: the object.
        configuration: of its groups.
        adopted: whether it is the user's.
        nodes: node of each pod of a group, for created ones.
        gpus_per_pod: that its pods ask for.
        groups: that have pods that are not terminal.
    """

    kind: SetKind
    item: Object
    configuration: str
    adopted: bool
    nodes: tuple[str, ...]
    gpus_per_pod: int
    groups: tuple[ObservedGroup, ...] = field(default=())

    @property
    def name(self) -> str:
        """Name of the object."""
        return name_of(self.item)

    @property
    def reference(self) -> ObjectRef:
        """The object as it was seen."""
        return reference(self.item, self.kind)

    @property
    def replicas(self) -> int:
        """Groups that were asked for."""
        return int(part(self.item, "spec").get("replicas", 1))

    @property
    def staying(self) -> tuple[ObservedGroup, ...]:
        """Groups that were not told to go."""
        return tuple(group for group in self.groups if not group.leaving)

    @property
    def footprint(self) -> Footprint:
        """GPUs of one created group by node."""
        return footprint(self.nodes, self.gpus_per_pod)

    @property
    def promised(self) -> int:
        """Created groups that were asked for and have no bound pods."""
        return 0 if self.adopted else max(0, self.replicas - sum(group.bound for group in self.staying))

    @property
    def goes(self) -> bool:
        """Whether the object itself was told to go."""
        return is_terminating(self.item)

    @property
    def edited(self) -> bool:
        """Whether the pod template of a created Deployment was changed, as its controller counts."""
        revision = part(part(self.item, "metadata"), "annotations").get(REVISION_ANNOTATION, FIRST_REVISION)
        return not self.adopted and revision != FIRST_REVISION

    @property
    def rolls(self) -> bool:
        """Whether Kubernetes is still replacing its pods."""
        status, generation = part(self.item, "status"), part(self.item, "metadata").get("generation", 0)
        behind = int(status.get("observedGeneration", 0)) < int(generation)
        return self.adopted and (behind or int(status.get("updatedReplicas", 0)) < self.replicas)
