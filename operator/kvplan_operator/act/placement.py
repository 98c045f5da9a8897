"""Where the groups of a plan go: as the plan says, and where it leaves that open, the tightest fit.

Inputs: a plan, the fleet's configurations, the inventory. Output: the nodes of every group, a node per stage. Plans of
the planner name them all; those that people write may not. The same inputs give the same answer, and groups stay on
nodes where their configuration runs already, so that an open placement does not move by itself. Pure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from kvplan_operator.act.refusals import refused
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet_engine import Configuration
from kvplan_operator.api.routing_plan import Group, RoutingPlan
from kvplan_operator.model.inventory import Inventory

Stages = tuple[str, ...]
"""Node of each pipeline stage of one group."""


def placements(
    plan: RoutingPlan, configurations: Mapping[str, Configuration], inventory: Inventory
) -> dict[str, tuple[Stages, ...]]:
    """Stages of every created group, by configuration.

    Raises:
        RolloutRefused: a configuration that the fleet does not have, or groups that fit nowhere.
    """
    own = [group for group in plan.spec.groups if group.deployment is None and group.replicas]
    placed = {group.configuration: tuple(p.stages for p in group.placements) for group in own if group.placements}
    room = _Room(inventory)
    for name, stages in placed.items():
        room.take((node for group in stages for node in group), _known(plan, configurations, name).tensor_parallel)
    open_groups = sorted(
        (group for group in own if not group.placements),
        key=lambda group: (-_gpus(_known(plan, configurations, group.configuration)), group.configuration),
    )
    for group in open_groups:
        placed[group.configuration] = tuple(room.place(plan, group, configurations[group.configuration]))
    return placed


def _known(plan: RoutingPlan, configurations: Mapping[str, Configuration], name: str) -> Configuration:
    if name not in configurations:
        raise refused(
            ConditionReason.STALE_PLAN,
            f"RoutingPlan {plan.metadata.name}: spec.groups names {name}, which is no configuration of the fleet: "
            "accept a plan made for the fleet as it is",
        )
    return configurations[name]


def _gpus(configuration: Configuration) -> int:
    return configuration.tensor_parallel * configuration.pipeline_parallel


class _Room:
    """GPUs that are left while groups are placed one after another."""

    def __init__(self, inventory: Inventory) -> None:
        self.free = {node.name: node.free_gpus for node in inventory.nodes}
        self.product = {node.name: node.gpu_product for node in inventory.nodes}
        self.runs = Counter((group.configuration, node) for group in inventory.running for node in set(group.stages))

    def take(self, nodes: Iterator[str], gpus: int) -> None:
        for node in nodes:
            self.free[node] = self.free.get(node, 0) - gpus

    def place(self, plan: RoutingPlan, group: Group, configuration: Configuration) -> Iterator[Stages]:
        for number in range(group.replicas):
            stages = self._together(configuration) or self._apart(configuration)
            if stages is None:
                raise refused(
                    ConditionReason.INVENTORY_CHANGED,
                    f"RoutingPlan {plan.metadata.name}: group {number + 1} of {group.replicas} of "
                    f"{configuration.name} fits on no node: free GPUs are {self.free}: accept a smaller plan",
                )
            self.take(iter(stages), configuration.tensor_parallel)
            yield stages

    def _fitting(self, configuration: Configuration, gpus: int) -> list[str]:
        wanted = configuration.gpu_product
        fitting = [n for n, free in self.free.items() if free >= gpus and wanted in (None, self.product.get(n))]
        return sorted(fitting, key=lambda node: (-self.runs[configuration.name, node], self.free[node], node))

    def _together(self, configuration: Configuration) -> Stages | None:
        fitting = self._fitting(configuration, _gpus(configuration))
        return (fitting[0],) * configuration.pipeline_parallel if fitting else None

    def _apart(self, configuration: Configuration) -> Stages | None:
        if not configuration.span_nodes:
            return None
        fitting = self._fitting(configuration, configuration.tensor_parallel)
        room = [node for node in fitting for _ in range(self.free[node] // configuration.tensor_parallel)]
        stages = tuple(room[: configuration.pipeline_parallel])
        return stages if len(stages) == configuration.pipeline_parallel else None
