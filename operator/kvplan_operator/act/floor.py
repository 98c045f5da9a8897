"""The floor: what share of every class's capacity stays up while groups move (rollout.minAvailableMilli).

A class's capacity is the KV tokens that the groups of the configurations it is routed to hold for requests,

    C_i = Σ_{k ∈ R_i} n_k · Q_k,    R_i: routed to in the plan, or in the one before,

and the floor is minAvailable times the smaller of what the plan and the one before give the class: neither a fleet that
shrinks nor one that grows is held to what it never has. Where no plan was in force, the groups that run stand for it.
Inputs: plans, classes, groups. Outputs: whether some groups may go, and what they cost. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan, RoutingPlanSpec
from kvplan_solver.units import MILLI

Counts = Mapping[str, int]
"""Groups by configuration."""


def plan_in_force(plans: Iterable[RoutingPlan]) -> RoutingPlan | None:
    """The plan that was last put in force completely, as its condition says."""
    for plan in plans:
        stands = {c.type: c.status for c in plan.status.conditions}
        if stands.get(ConditionType.APPLIED) is ConditionStatus.TRUE:
            return plan
    return None


@dataclass(frozen=True, eq=False)
class Floor:
    """The floor of every class.

    Attributes:
        plan: being put in force.
        before: in force until then; None where none was.
        asked: groups that are asked for now, by configuration.
        min_available_milli: share that stays, thousandths.
        weights: cost of a rejected request by class.
    """

    plan: RoutingPlanSpec
    before: RoutingPlanSpec | None
    asked: Counts
    min_available_milli: int
    weights: Mapping[str, int]

    def broken(self, serving: Counts) -> str | None:
        """The first class whose floor these groups would not keep, in words; None if all keep it."""
        for name, needed in sorted(self._needed.items()):
            left = self._capacity(name, serving)
            if left * MILLI < needed:
                return f"class {name} would keep {left} KV tokens of {needed // MILLI} that must stay"
        return None

    def cost(self, groups: Counts) -> float:
        """What the loss of these groups weighs: Σ over classes of weight · share of its capacity."""
        return sum(count * self._unit_costs.get(name, 0.0) for name, count in groups.items())

    @cached_property
    def _unit_costs(self) -> Mapping[str, float]:
        """Cost of one group by configuration."""
        full = {name: self._full(name) for name in self._routed}
        costs: defaultdict[str, float] = defaultdict(float)
        for name, routed in self._routed.items():
            for k in routed:
                costs[k] += self.weights.get(name, 1) * self._tokens.get(k, 0) / full[name] if full[name] else 0
        return costs

    def _capacity(self, name: str, groups: Counts) -> int:
        return sum(groups.get(k, 0) * self._tokens.get(k, 0) for k in self._routed[name])

    def _full(self, name: str) -> int:
        return self._capacity(name, _counts(self.plan))

    @cached_property
    def _needed(self) -> Mapping[str, int]:
        """Floor of each class, thousandths of KV tokens."""
        before = self.asked if self.before is None else _counts(self.before)
        smaller = ((name, min(self._full(name), self._capacity(name, before))) for name in self._routed)
        return {name: self.min_available_milli * tokens for name, tokens in smaller}

    @cached_property
    def _tokens(self) -> Mapping[str, int]:
        """Q by configuration; the new plan's where both have one."""
        old = {} if self.before is None else {g.configuration: g.budget_tokens for g in self.before.groups}
        return old | {group.configuration: group.budget_tokens for group in self.plan.groups}

    @cached_property
    def _routed(self) -> Mapping[str, frozenset[str]]:
        """Configurations each class of the plan is routed to, before or after."""
        after, before = _routes(self.plan), {} if self.before is None else _routes(self.before)
        return {name: routed | before.get(name, frozenset()) for name, routed in after.items()}


def class_weights(fleet: ServingFleet, classes: Iterable[RequestClass]) -> dict[str, int]:
    """Cost of a rejected request by class."""
    usual = fleet.spec.objective.rejection_weight
    own = {c.metadata.name: c.spec.costs.rejection_weight for c in classes}
    return {name: usual if weight is None else weight for name, weight in own.items()}


def _counts(plan: RoutingPlanSpec) -> Counter[str]:
    return Counter({group.configuration: group.replicas for group in plan.groups})


def _routes(plan: RoutingPlanSpec) -> dict[str, frozenset[str]]:
    return {c.name: frozenset(route.configuration for route in c.routes) for c in plan.classes}
