"""What a rollout asks the cluster to do, as values: shown, logged, checked again, then executed.

Each command names the object with the uid and resourceVersion that the decision was made on; whoever executes it
refuses another object or another state. Pure data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kvplan_operator.act.engine_sets import SetKind, TargetSet
from kvplan_operator.model.pods import Object, name_of


@dataclass(frozen=True)
class ObjectRef:
    """An object in a state.

    Attributes:
        kind: of the object.
        name: of the object.
        uid: identity over all time.
        resource_version: of the state that was seen.
    """

    kind: str
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, eq=False)
class CreateConfig:
    """Write the file of flags that a set is about to read."""

    manifest: Object

    def __str__(self) -> str:
        return f"create ConfigMap {name_of(self.manifest)}"


@dataclass(frozen=True, eq=False)
class CreateSet:
    """Create a set with its first groups.

    Attributes:
        target: as the plan wants it.
        replicas: groups to begin with.
    """

    target: TargetSet
    replicas: int

    def __str__(self) -> str:
        where = ",".join(self.target.nodes)
        return f"create {self.target.kind} {self.target.name} on {where} with {self.replicas}"


@dataclass(frozen=True)
class ScaleSet:
    """Change the number of groups of a set by one.

    Attributes:
        on: the set as it was seen.
        before: groups it had.
        replicas: groups it gets.
        plan_name: the RoutingPlan that asks for it.
        nodes: node of each pod of a new group; empty when it shrinks, or where the scheduler decides.
        gpus_per_pod: of a new group.
        leaving: the group's (leading) pod that goes; None when the set grows or has fewer pods than replicas.
        notes: annotations that go with it.
    """

    on: ObjectRef
    before: int
    replicas: int
    plan_name: str
    nodes: tuple[str, ...] = ()
    gpus_per_pod: int = 0
    leaving: ObjectRef | None = None
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"scale {self.on.kind} {self.on.name} from {self.before} to {self.replicas}"


@dataclass(frozen=True)
class StartDrain:
    """Take a group out of the table, and make its pod the one that goes when its set shrinks.

    Attributes:
        pod: the group's (leading) pod.
        since: now, seconds since the epoch.
    """

    pod: ObjectRef
    since: int

    def __str__(self) -> str:
        return f"drain {self.pod.name}"


@dataclass(frozen=True)
class StopDrain:
    """Give a group back to the table: it is wanted again."""

    pod: ObjectRef

    def __str__(self) -> str:
        return f"keep {self.pod.name}"


@dataclass(frozen=True, eq=False)
class PatchAdopted:
    """Change the flags of an adopted Deployment; Kubernetes replaces its pods one by one.

    Attributes:
        on: the Deployment as it was seen.
        target: as the plan wants it.
    """

    on: ObjectRef
    target: TargetSet

    def __str__(self) -> str:
        return f"patch Deployment {self.on.name}"


@dataclass(frozen=True)
class KeepNotes:
    """Take over what a set that is about to be deleted knows of the past.

    Attributes:
        on: a set that stays.
        notes: annotations.
    """

    on: ObjectRef
    notes: Mapping[str, str] = field(hash=False)

    def __str__(self) -> str:
        return f"keep notes on {self.on.kind} {self.on.name}"


@dataclass(frozen=True)
class DeleteSet:
    """Delete an empty set that no plan wants."""

    on: ObjectRef

    def __str__(self) -> str:
        return f"delete {self.on.kind} {self.on.name}"


@dataclass(frozen=True)
class DeleteConfig:
    """Delete a file of flags that no set reads."""

    on: ObjectRef

    def __str__(self) -> str:
        return f"delete ConfigMap {self.on.name}"


Command: TypeAlias = (
    CreateConfig | CreateSet | ScaleSet | StartDrain | StopDrain | PatchAdopted | KeepNotes | DeleteSet | DeleteConfig
)


def reference(item: Object, kind: SetKind | str) -> ObjectRef:
    """An object as it was seen."""
    metadata = item.get("metadata") or {}
    return ObjectRef(
        str(kind), name_of(item), str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")
    )
