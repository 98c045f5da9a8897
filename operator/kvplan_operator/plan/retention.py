"""Which RoutingPlans may be deleted.

Inputs: the fleet's ``Shelf``, its history limit, the clock. Output: the plans to delete. Kept for good: what people
wrote or ever accepted, the plan in force, the candidate, the plan to return to, and all of the last 24 hours. Of the
rest, the newest ``historyLimit``. Pure. Source: 01-api (Plan policy).
"""

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.rollback import last_good
from kvplan_operator.plan.standing import Shelf, created_at, made_by_people, was_accepted_by_people

KEPT_SECONDS = 24 * 3_600.0
"""Age below which no plan is deleted."""


def garbage(shelf: Shelf, history_limit: int, now: float) -> tuple[RoutingPlan, ...]:
    """Plans to delete, oldest first.

    Args:
        shelf: the fleet's plans.
        history_limit: ``spec.planPolicy.historyLimit``.
        now: seconds since the epoch.
    """
    needed = {shelf.current, shelf.candidate, shelf.accepted, last_good(shelf)}
    history = [(created_at(plan) or now, digest) for digest, plan in shelf.plans.items() if digest not in needed]
    ordinary = sorted((made, digest) for made, digest in history if not _precious(shelf.plans[digest]))
    beyond = ordinary[: max(0, len(ordinary) - history_limit)]
    return tuple(shelf.plans[digest] for made, digest in beyond if now - made >= KEPT_SECONDS)


def _precious(plan: RoutingPlan) -> bool:
    return made_by_people(plan) or was_accepted_by_people(plan)
