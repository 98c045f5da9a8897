"""The GPUs a fleet may use: free ones by node, the rest with a reason, and the groups that run already.

Inputs: the fleet, core/v1 Nodes and Pods as plain mappings. Output: a frozen ``Inventory``. GPUs held by
this fleet's own groups count as free, because a plan may rearrange them. Must not: trust a node that does
not say it is ready, or count a GPU that any pod outside the fleet still holds. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import GPU_PRODUCT_LABEL
from kvplan_operator.api.scalars import OBJECT_NAME_PATTERN
from kvplan_operator.model.pods import (
    Object,
    configuration_of,
    is_terminal,
    is_terminating,
    labels_of,
    name_of,
    node_of,
    part,
    parts,
    requested_gpus,
    running_groups,
    whole_gpus,
)
from kvplan_operator.model.selectors import selects, untolerated_taint
from kvplan_operator.model.shapes import NODE, POD, Shape, check_shape
from kvplan_operator.model.watched import Watched
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import GroupPlacement, NodeInput

MIG_RESOURCE = "nvidia.com/mig-"
MIG_PRODUCT = "-MIG-"
LONGEST_NAME = 253
"""Characters of a DNS subdomain."""


class ExclusionReason(StrEnum):
    """Why GPUs are left out; the words are those of the fleet's conditions, NotSelected aside."""

    NOT_SELECTED = "NotSelected"
    """The node's labels do not match ``spec.nodes.selector``."""
    CORDONED = "Cordoned"
    NODE_NOT_READY = "NodeNotReady"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    PARTITIONED_GPUS = "PartitionedGpus"
    FOREIGN_PODS = "ForeignPods"
    NO_GPUS = "NoGpus"


@dataclass(frozen=True, order=True)
class ExcludedGpus:
    """GPUs (or MIG slices) of one node that the fleet cannot use, and why.

    Attributes:
        node: its name.
        gpus: how many.
        reason: for programs.
        message: for people, with the remedy where there is one.
    """

    node: str
    gpus: int
    reason: ExclusionReason
    message: str = field(default="", compare=False)


@dataclass(frozen=True)
class Inventory:
    """What a plan can be made of.

    Attributes:
        nodes: nodes with GPUs the fleet may use, by name.
        excluded: every other GPU that was seen, by node.
        running: groups of the fleet that run on ``nodes`` now, sorted.
        groups_may_span: whether the cluster can run one group on several nodes: the LeaderWorkerSet API is served.
    """

    nodes: tuple[NodeInput, ...]
    excluded: tuple[ExcludedGpus, ...] = ()
    running: tuple[GroupPlacement, ...] = ()
    groups_may_span: bool = True

    @property
    def gpus(self) -> int:
        """GPUs the fleet may use."""
        return sum(node.free_gpus for node in self.nodes)

    @property
    def products(self) -> tuple[str, ...]:
        """GPU products of the nodes, ascending, without the unknown one."""
        return tuple(sorted({node.gpu_product for node in self.nodes} - {""}))


def inventory_from_objects(nodes: Sequence[Object], pods: Sequence[Object], fleet: ServingFleet) -> Inventory:
    """The inventory of a fleet.

    Args:
        nodes: core/v1 Nodes, all of the cluster or some.
        pods: core/v1 Pods of every namespace; without them every allocatable GPU counts as free.
        fleet: names the selector, the resource and the tolerations.

    Raises:
        InvalidInput: a node without a name, with one that no node can have or that occurs twice, a field of a wrong
            type, or a quantity that is no whole number.
    """
    _check_shapes(nodes, pods)
    _check_names(nodes)
    bound = [pod for pod in pods if node_of(pod) and not is_terminal(pod)]
    foreign = _by_node(pod for pod in bound if configuration_of(pod, fleet) is None)
    looks = [_Node(node, foreign.get(name_of(node), ()), fleet) for node in sorted(nodes, key=name_of)]
    usable = tuple(look.as_input() for look in looks if look.free > 0)
    return Inventory(
        nodes=usable,
        excluded=tuple(excluded for look in looks for excluded in look.excluded()),
        running=_running(bound, fleet, {node.name for node in usable}),
    )


def _check_names(nodes: Sequence[Object]) -> None:
    for name, copies in Counter(map(name_of, nodes)).items():
        if not name:
            raise InvalidInput("Node", "metadata.name", None, "give every node its name")
        if len(name) > LONGEST_NAME or not re.fullmatch(OBJECT_NAME_PATTERN, name):
            remedy = f"use a DNS subdomain: lower-case letters, digits, '-' and '.', at most {LONGEST_NAME} characters"
            raise InvalidInput("Node", "metadata.name", name, remedy)
        if copies > 1:
            raise InvalidInput("Node", "metadata.name", name, "drop the second copy of this node")


def _check_shapes(nodes: Sequence[Object], pods: Sequence[Object]) -> None:
    for kind, objects, shape in (("Node", nodes, NODE), ("Pod", pods, POD)):
        for item in objects:
            _check_shape(kind, item, shape)


def _check_shape(kind: str, item: Object, shape: Shape) -> None:
    def check() -> None:
        check_shape(f"{kind} {name_of(item)}".rstrip(), item, shape)

    if isinstance(item, Watched):
        item.once(kind, check)
    else:
        check()


def _by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    held: dict[str, list[Object]] = {}
    for pod in pods:
        held.setdefault(node_of(pod), []).append(pod)
    return held


def _running(pods: Sequence[Object], fleet: ServingFleet, usable: set[str]) -> tuple[GroupPlacement, ...]:
    """Groups that stay if nobody moves them: not those told to go, nor those on nodes that are left out."""
    staying = [pod for pod in pods if not is_terminating(pod)]
    return tuple(group for group in running_groups(staying, fleet) if set(group.stages) <= usable)


class _Node:
    """One node as the fleet sees it."""

    def __init__(self, node: Object, foreign: Sequence[Object], fleet: ServingFleet) -> None:
        self.node, self.wanted = node, fleet.spec.nodes
        self.name, self.labels = name_of(node), labels_of(node)
        self.offered = self._allocatable(self.wanted.gpu_resource)
        held = sum(requested_gpus(pod, self.wanted.gpu_resource) for pod in foreign)
        self.foreign = min(self.offered, held)

    @property
    def product(self) -> str:
        """GPU product by label, else the fleet's preset."""
        return self.labels.get(GPU_PRODUCT_LABEL) or self.wanted.gpu_preset or ""

    @property
    def free(self) -> int:
        """GPUs the fleet may use."""
        return 0 if self.refusal else self.offered - self.foreign

    def as_input(self) -> NodeInput:
        """The solver's node."""
        return NodeInput(self.name, self.free, self.product)

    def excluded(self) -> Iterator[ExcludedGpus]:
        """What of this node is left out."""
        if self.refusal is not None:
            yield ExcludedGpus(self.name, self.offered, *self.refusal)
        elif self.foreign:
            message = f"pods outside the fleet hold {self.foreign} of {self.offered} GPUs"
            yield ExcludedGpus(self.name, self.foreign, ExclusionReason.FOREIGN_PODS, message)
        slices = self._mig_slices()
        if slices:
            message = f"{slices} MIG slices: kvplan plans whole GPUs only"
            yield ExcludedGpus(self.name, slices, ExclusionReason.PARTITIONED_GPUS, message)

    @cached_property
    def refusal(self) -> tuple[ExclusionReason, str] | None:
        """Why no GPU of the node can be used, the first reason that holds."""
        if not selects(self.wanted.selector, self.labels):
            return ExclusionReason.NOT_SELECTED, "spec.nodes.selector does not match its labels"
        if part(self.node, "spec").get("unschedulable"):
            return ExclusionReason.CORDONED, "the node is cordoned: uncordon it to use its GPUs"
        return self._not_ready() or self._tainted() or self._without_gpus()

    def _not_ready(self) -> tuple[ExclusionReason, str] | None:
        conditions = parts(part(self.node, "status"), "conditions")
        ready = [condition.get("status") for condition in conditions if condition.get("type") == "Ready"]
        if ready == ["True"]:
            return None
        seen = f"condition Ready is {ready[0]}" if ready else "it reports no condition Ready"
        return ExclusionReason.NODE_NOT_READY, seen

    def _tainted(self) -> tuple[ExclusionReason, str] | None:
        taints = parts(part(self.node, "spec"), "taints")
        taint = untolerated_taint(taints, self.wanted.tolerations)
        if taint is None:
            return None
        shown = f"{taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
        return ExclusionReason.TAINT_NOT_TOLERATED, f"add a toleration of {shown} to spec.nodes.tolerations"

    def _without_gpus(self) -> tuple[ExclusionReason, str] | None:
        if MIG_PRODUCT in self.product:
            return ExclusionReason.PARTITIONED_GPUS, f"{self.product} is a MIG slice, not a whole GPU"
        if self.offered == 0 and not self._mig_slices():
            return ExclusionReason.NO_GPUS, f"allocatable has no {self.wanted.gpu_resource}"
        return None

    def _mig_slices(self) -> int:
        allocatable = part(part(self.node, "status"), "allocatable")
        names = sorted(name for name in allocatable if name.startswith(MIG_RESOURCE))
        return sum(self._allocatable(name) for name in names)

    def _allocatable(self, resource: str) -> int:
        value = part(part(self.node, "status"), "allocatable").get(resource, 0)
        return whole_gpus(f"Node {self.name}", f"status.allocatable[{resource}]", value)
