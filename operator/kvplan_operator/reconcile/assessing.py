"""Plans as they stand today: each assessed once per problem.

Inputs: the shelf, the ``Ground``, the ``Memory``. Output: ``Judged`` by digest; a plan that cannot be assessed on the
problem is one with that as its problem, and without a problem nothing is judged. Does no I/O.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import HotClass
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.hot_values import with_hot_values
from kvplan_operator.plan.judged import Judged, judge_plan, was_proposed
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.rollback import last_good
from kvplan_operator.plan.standing import Shelf
from kvplan_operator.reconcile.memory import Memory
from kvplan_solver.errors import SolverError

_MOST_KEPT = 64


def judged_plans(shelf: Shelf, memory: Memory) -> Mapping[str, Judged]:
    """Every plan that a choice may need, and those that nobody looked at yet."""
    return {digest: judged for digest in _asked(shelf) if (judged := judge(shelf, digest, memory)) is not None}


def judge(shelf: Shelf, digest: str, memory: Memory) -> Judged | None:
    """One plan of the shelf; None without a problem."""
    plan = shelf.plans[digest]
    found = assessed(plan, digest, hot_of(shelf, digest, memory), memory)
    if found is None:
        return None
    if isinstance(found, str):
        return Judged(plan, digest, math.inf, (found,))
    return replace(judge_plan(found), digest=digest)


def assessed(plan: RoutingPlan, digest: str, hot: tuple[HotClass, ...], memory: Memory) -> Planned | str | None:
    """A plan with other hot values on the problem in memory; why it does not fit it; None without a problem."""
    problems = memory.problems
    if problems.problem is None:
        return None
    if (digest, hot) not in problems.assessed:
        if len(problems.assessed) >= _MOST_KEPT:
            problems.assessed.clear()
        try:
            problems.assessed[digest, hot] = assess_plan(with_hot_values(plan, hot), problems.problem)
        except SolverError as error:
            problems.assessed[digest, hot] = str(error)
    return problems.assessed[digest, hot]


def hot_of(shelf: Shelf, digest: str, memory: Memory) -> tuple[HotClass, ...]:
    """Values in force for a plan: those a solve just found, else the stored ones; none of a plan not in force."""
    if digest != shelf.current:
        return ()
    return memory.hot.get(digest) or shelf.plans[digest].status.hot_values


def _asked(shelf: Shelf) -> Iterable[str]:
    wanted = {shelf.current, shelf.candidate, shelf.accepted, last_good(shelf)}
    fresh = {digest for digest, plan in shelf.plans.items() if not was_proposed(plan)}
    return sorted(digest for digest in wanted | fresh if digest is not None and digest in shelf.plans)
