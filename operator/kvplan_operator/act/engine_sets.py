"""Engine sets: the objects that run groups, as a plan wants them and as the cluster has them.

A set is a Deployment (a group is a pod) or a LeaderWorkerSet (a group is a leader and its workers). Created sets hold
groups of one configuration on one node (or one tuple of nodes) with one rendering of the engine, so that a change of
anything is another set and a running template is never touched. Pure data.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kvplan_operator.model.pods import Object

Footprint = Mapping[str, int]
"""GPUs by node."""


class SetKind(StrEnum):
    """What runs the groups of a set."""

    DEPLOYMENT = "Deployment"
    WORKER_SET = "LeaderWorkerSet"


@dataclass(frozen=True, eq=False)
class TargetSet:
    """A set that a plan wants.

    Attributes:
        kind: of the object.
        name: of the object.
        configuration: of its groups.
        nodes: node of each pod of a group; empty for adopted Deployments, which go where the scheduler puts them.
        gpus_per_pod: that each pod asks for.
        replicas: groups wanted.
        manifest: the whole object with ``replicas`` as wanted; for adopted ones the fields that kvplan owns.
        config_map: the file of flags, if they are in one.
        adopted: whether the object is the user's.
        replicas_external: whether an autoscaler owns the replicas.
    """

    kind: SetKind
    name: str
    configuration: str
    nodes: tuple[str, ...]
    gpus_per_pod: int
    replicas: int
    manifest: Object
    config_map: Object | None = field(default=None)
    adopted: bool = False
    replicas_external: bool = False

    @property
    def footprint(self) -> Footprint:
        """GPUs of one group by node."""
        return footprint(self.nodes, self.gpus_per_pod)


def footprint(nodes: tuple[str, ...], gpus_per_pod: int) -> Footprint:
    """GPUs of one group by node."""
    return {node: pods * gpus_per_pod for node, pods in Counter(nodes).items()}
