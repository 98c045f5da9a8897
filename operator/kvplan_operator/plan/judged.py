"""A plan as a choice looks at it: its cost today and what is wrong with it today.

Input: a ``Planned`` (made or assessed on today's problem). Output: a frozen ``Judged``. Pure.
"""

import math
from dataclasses import dataclass

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.derived import Difference
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.standing import condition_of

TOLERATED = 0.1
"""Relative distance between a derived number of a plan and today's at which the plan is still right."""


@dataclass(frozen=True, eq=False)
class Judged:
    """One plan today.

    Attributes:
        plan: the plan.
        digest: of its spec.
        cost: per second, in wasted KV tokens; infinite where a queue never empties.
        problems: what is wrong, a sentence each; empty where its certificate holds.
    """

    plan: RoutingPlan
    digest: str
    cost: float
    problems: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the plan keeps every constraint today."""
        return not self.problems

    def saving_over(self, other: "Judged") -> float:
        """Relative saving over another plan, of the other's cost: from 1 to −1 for a plan twice as dear or more."""
        if other.cost == self.cost:
            return 0.0
        if math.isinf(other.cost):
            return 1.0
        return max(-1.0, 1.0 - self.cost / other.cost) if other.cost else -1.0


def judge_plan(planned: Planned) -> Judged:
    """A plan with its cost and its problems.

    Figures that follow from the decision are compared only until the plan was found good once (Proposed): after
    that they drift with the measurements, and the certificate alone says whether the plan still holds.
    """
    broken = tuple(f"{v.check.value} {v.subject}: {v.message}" for v in planned.certificate.violations)
    drifted = () if was_proposed(planned.plan) else tuple(d.message for d in planned.differences if is_wrong(d))
    return Judged(planned.plan, plan_digest(planned.plan.spec), planned.result.costs.total, (*broken, *drifted))


def was_proposed(plan: RoutingPlan) -> bool:
    """Whether kvplan once found the plan good; only kvplan writes status."""
    condition = condition_of(plan, ConditionType.PROPOSED)
    return condition is not None and condition.status is ConditionStatus.TRUE


def is_wrong(difference: Difference) -> bool:
    """Whether a derived field is off by more than measurements may move a number."""
    stated, expected = _number(difference.value), _number(difference.expected)
    if stated is None or expected is None:
        return True
    return abs(stated - expected) > TOLERATED * max(abs(stated), abs(expected))


def _number(value: object) -> float | None:
    text = str(value)
    return float(text) if text.isdecimal() else None
