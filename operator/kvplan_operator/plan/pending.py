"""What a solve's plan becomes: the new candidate, new hot values for the plan in force, or nothing.

Inputs: the fresh plan, the candidate that waits and the plan in force, all ``Judged`` on the same problem. Output: a
frozen ``Outcome``. A candidate that people may be reading stays as long as it holds and nothing clearly better came
up; a plan that needs no restart does not become a candidate. Pure. Source: 01-api (Plan policy), 00 (Two speeds).
"""

from dataclasses import dataclass

from kvplan_operator.plan.diff import diff_plans
from kvplan_operator.plan.judged import Judged


@dataclass(frozen=True, eq=False)
class Outcome:
    """What becomes of a solve.

    Attributes:
        candidate: the plan that waits from now on; None: none does.
        retuned: the plan whose hot values the plan in force takes over; None: it keeps its own.
    """

    candidate: Judged | None = None
    retuned: Judged | None = None


def outcome_of(
    fresh: Judged, pending: Judged | None, current: Judged | None, min_improvement: float, *, may_retune: bool = True
) -> Outcome:
    """What a fresh plan becomes.

    Args:
        fresh: the plan just found.
        pending: the candidate that waits; None where none does.
        current: the plan in force, with its present hot values; None where none is.
        min_improvement: relative saving below which nothing is worth a change.
        may_retune: False where the policy changes nothing at all (DryRun).
    """
    kept = pending if pending is not None and _worth_waiting(pending, current) else None
    if not fresh.holds:
        return Outcome(kept)
    if current is not None and not _cold(fresh, current):
        return Outcome(kept, fresh if may_retune and _better(fresh, current, min_improvement) else None)
    if kept is not None and not _better(fresh, kept, min_improvement):
        return Outcome(kept)
    return Outcome(fresh if current is None or _better(fresh, current, min_improvement) else None)


def _worth_waiting(pending: Judged, current: Judged | None) -> bool:
    """Whether a candidate still holds and still saves something."""
    if not pending.holds or (current is not None and pending.digest == current.digest):
        return False
    return current is None or _better(pending, current, 0.0)


def _better(plan: Judged, other: Judged, by: float) -> bool:
    return not other.holds or plan.saving_over(other) > by


def _cold(fresh: Judged, current: Judged) -> bool:
    return any(row.cold for row in diff_plans(current.plan, fresh.plan).rows)
