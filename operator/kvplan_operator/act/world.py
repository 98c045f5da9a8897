"""One look at a rollout: what is wanted beside what is there, and what may be taken away.

Inputs: a Snapshot, the plan, the published index, the rules. Output: a ``World``, from which the step planner decides.
Everything is derived; nothing is remembered between two looks. Pure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kvplan_operator.act.drain import Witnesses
from kvplan_operator.act.edited import under_its_name
from kvplan_operator.act.engine_sets import Footprint, SetKind, TargetSet
from kvplan_operator.act.floor import Floor, class_weights, plan_in_force
from kvplan_operator.act.ledger import Ledger, ledger
from kvplan_operator.act.observed_groups import ObservedGroup, ObservedSet
from kvplan_operator.act.observed_sets import observed_sets
from kvplan_operator.act.promises import promised_elsewhere
from kvplan_operator.act.targets import target_sets
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.inventory import Inventory, inventory_from_objects
from kvplan_operator.model.pods import Object, is_ready, name_of
from kvplan_operator.model.snapshot import Snapshot

PLAN_MODE = "plan"


@dataclass(frozen=True)
class RolloutRules:
    """How a plan is put in force.

    Attributes:
        min_available_milli: share of each class's capacity that stays up, thousandths.
        drain_timeout_seconds: a draining group may take to finish its requests.
        deadline_seconds: one step may take.
    """

    min_available_milli: int
    drain_timeout_seconds: int
    deadline_seconds: int

    @classmethod
    def of(cls, fleet: ServingFleet) -> "RolloutRules":
        """As the fleet says."""
        rollout = fleet.spec.rollout
        return cls(rollout.min_available_milli, rollout.drain_timeout_seconds, rollout.deadline_seconds)


@dataclass(frozen=True, eq=False)
class World:
    """What is wanted and what is there.

    Attributes:
        snapshot: the objects.
        plan: to put in force.
        index: published, if there is one.
        rules: of the rollout.
        inventory: nodes that may be used.
        targets: wanted sets by name.
        sets: sets that exist, by name.
    """

    snapshot: Snapshot
    plan: RoutingPlan
    index: Object | None
    rules: RolloutRules
    inventory: Inventory
    targets: Mapping[str, TargetSet]
    sets: Mapping[str, ObservedSet]

    @cached_property
    def usable(self) -> frozenset[str]:
        """Nodes that new groups may go to."""
        return frozenset(node.name for node in self.inventory.nodes)

    @cached_property
    def nodes(self) -> Mapping[str, bool]:
        """Whether a node is Ready, for each that exists."""
        return {name_of(node): is_ready(node) for node in self.snapshot.cluster.nodes}

    @cached_property
    def ledger(self) -> Ledger:
        """GPUs by node, groups of all fleets that were asked for and are not bound yet included."""
        promised = [seen.footprint for seen in self.sets.values() for _ in range(seen.promised)]
        cluster, fleet = self.snapshot.cluster, self.snapshot.fleet
        sets = (*cluster.deployments, *cluster.worker_sets, *cluster.other_sets)
        elsewhere = promised_elsewhere(sets, cluster.pods, fleet)
        return ledger(cluster.nodes, cluster.pods, fleet.spec.nodes.gpu_resource, [*promised, *elsewhere])

    @cached_property
    def before(self) -> RoutingPlan | None:
        """The plan in force until this one is."""
        return plan_in_force(self.snapshot.plans)

    @cached_property
    def floor(self) -> Floor:
        """What must stay up."""
        asked: Counter[str] = Counter()
        for seen in self.sets.values():
            asked[seen.configuration] += seen.replicas
        weights = class_weights(self.snapshot.fleet, self.snapshot.classes)
        before = None if self.before is None else self.before.spec
        return Floor(self.plan.spec, before, asked, self.rules.min_available_milli, weights)

    @cached_property
    def witnesses(self) -> Witnesses:
        """Who can say that a group is empty."""
        return Witnesses.of(self.snapshot, self.index, self.rules.drain_timeout_seconds)

    def alive(self, group: ObservedGroup) -> bool:
        """Whether the group may have requests: it is Ready, on nodes that are."""
        return group.ready and all(self.nodes.get(node) for node in group.nodes)

    def serves(self, group: ObservedGroup) -> bool:
        """Whether the group gets requests: it is alive, and in the table where there is one."""
        up = self.alive(group) and group.draining_since is None
        return up and (group.in_table or not self._has_table)

    def wanted(self, seen: ObservedSet) -> int:
        """Groups of a set that the plan wants."""
        target = self.targets.get(seen.name)
        if target is None:
            return 0
        return seen.replicas if target.replicas_external else target.replicas

    def surplus(self, seen: ObservedSet) -> int:
        """Groups of a set that are asked for and not wanted."""
        return max(0, seen.replicas - self.wanted(seen))

    def deficit(self, target: TargetSet) -> int:
        """Groups of a target that were not asked for yet."""
        if target.replicas_external:
            return 0
        seen = self.sets.get(target.name)
        return max(0, target.replicas - (0 if seen is None else seen.replicas))

    def unwanted(self, seen: ObservedSet) -> tuple[ObservedGroup, ...]:
        """Groups that go, those included that their set was already told to end; in the order in which they go."""
        return self._last(seen, min(self.wanted(seen), seen.replicas))

    def victims(self, seen: ObservedSet) -> tuple[ObservedGroup, ...]:
        """Groups that go when a set shrinks, in the order in which its controller takes them."""
        return self.unwanted(seen)[: self.surplus(seen)]

    def goes(self, group: ObservedGroup) -> bool:
        """Whether a group is on its way out: it ends, will be ended by its controller, drains, or never served."""
        if group.leaving or group.uid in self._ending_uids:
            return True
        idle = group.draining_since is not None or not self.alive(group)
        return idle and group.uid in self.unwanted_uids

    @cached_property
    def unwanted_uids(self) -> frozenset[str]:
        """Identities of all groups that go."""
        return frozenset(group.uid for seen in self.sets.values() for group in self.unwanted(seen))

    @cached_property
    def _ending_uids(self) -> frozenset[str]:
        """Identities of groups that a controller is about to end."""
        return frozenset(group.uid for seen in self.sets.values() for group in self._last(seen, seen.replicas))

    @staticmethod
    def _last(seen: ObservedSet, staying: int) -> tuple[ObservedGroup, ...]:
        """The groups beyond so many, in the order in which the set's controller ends them."""
        if seen.kind is SetKind.WORKER_SET:
            ordered = sorted(seen.staying, key=lambda group: group.number, reverse=True)
        else:
            ordered = sorted(seen.staying, key=_end_order)
        return tuple(ordered[: max(0, len(ordered) - staying)])

    def all_victims(self) -> Iterator[tuple[ObservedSet, ObservedGroup]]:
        """Every group that the plan does not want, with its set."""
        for seen in self.sets.values():
            for group in self.victims(seen):
                yield seen, group

    def footprints(self, target: TargetSet) -> tuple[Footprint, ...]:
        """Where a new group may go: one place for created sets, any usable node for adopted ones."""
        if not target.adopted:
            return (target.footprint,) if set(target.nodes) <= self.usable else ()
        return tuple({node: target.gpus_per_pod} for node in sorted(self.usable))

    @property
    def _has_table(self) -> bool:
        return self.index is not None and self.index.get("mode") == PLAN_MODE


def look(
    snapshot: Snapshot,
    plan: RoutingPlan,
    index: Object | None,
    rules: RolloutRules,
    inventory: Inventory | None = None,
    observed: Sequence[ObservedSet] | None = None,
) -> World:
    """Everything that the step planner needs.

    Args:
        snapshot: the objects.
        plan: to put in force.
        index: published, if there is one.
        rules: of the rollout.
        inventory: of the same objects; None reads it off them.
        observed: engine sets among them; None reads those off them.

    Raises:
        RolloutRefused: the plan cannot be rendered for this cluster.
    """
    cluster = snapshot.cluster
    inventory = inventory or inventory_from_objects(cluster.nodes, cluster.pods, snapshot.fleet)
    found = observed_sets(cluster, snapshot.fleet, index) if observed is None else observed
    sets = {seen.name: seen for seen in found}
    targets = [under_its_name(target, sets, snapshot.now) for target in target_sets(snapshot, plan, inventory)]
    return World(snapshot, plan, index, rules, inventory, {target.name: target for target in targets}, sets)


def _end_order(group: ObservedGroup) -> tuple[bool, bool, bool, str]:
    """As a ReplicaSet ends pods: unbound ones, unready ones, then those of least deletion cost (a draining one)."""
    return group.bound, group.ready, group.draining_since is None, group.name
