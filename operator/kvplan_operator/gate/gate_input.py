"""All that the gate looks at, as plain values. Pure data.

``gather`` makes it from a snapshot; tests make it by hand.
"""

from dataclasses import dataclass

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.plan.choice import Standing
from kvplan_operator.plan.diff import Change, PlanDiff


@dataclass(frozen=True)
class Freshness:
    """What ``model.freshness`` says of the measurements."""

    status: ConditionStatus
    reason: ConditionReason
    message: str


@dataclass(frozen=True)
class Ground:
    """The GPUs under a plan.

    Attributes:
        planned: ``inventory_digest`` the plan was made for; None where it names none (people wrote it).
        today: the digest now.
        lost: nodes that the plan places groups on and that offer too few GPUs now, a sentence each.
    """

    planned: str | None
    today: str
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gain:
    """What the plan costs against the plan in force, today.

    Attributes:
        before: cost of the plan in force, per second; infinite where a queue never empties.
        after: cost of the plan, per second.
        holds: whether the plan in force keeps every constraint today; one that does not may be replaced at once.
    """

    before: float
    after: float
    holds: bool = True

    @property
    def per_second(self) -> float:
        """Saving per second; infinite where only the plan in force never catches up, 0 where both do not."""
        return 0.0 if self.before == self.after else self.before - self.after


@dataclass(frozen=True)
class History:
    """What was done before, as ``gate.history`` reads it from objects.

    Attributes:
        stands_since: when the partition in force was complete; None where none is.
        restarts: when kvplan stopped a group that served, for a change; seconds since the epoch.
        set_back: when kvplan found fields set back by another controller, seconds since the epoch.
        load_seconds: how long a group takes from its start until it serves.
    """

    stands_since: float | None = None
    restarts: tuple[float, ...] = ()
    set_back: tuple[float, ...] = ()
    load_seconds: float = 120.0


@dataclass(frozen=True, eq=False)
class GateInput:
    """One plan before the gate.

    Attributes:
        now: seconds since the epoch.
        fleet: the fleet.
        plan: the plan judged.
        digest: of its spec.
        standing: how it came to be pursued.
        accepted: whether its digest stands in ``spec.acceptedPlan``.
        freshness: of the measurements.
        problems: what the certificate found, a sentence each; None where it could not be checked.
        ground: the GPUs under it.
        change: what it changes over the plan in force.
        gain: what that saves; None where no plan is in force.
        unfinished: whether it is in force and groups may still have to restart for it, within the budget.
        finishing: whether its next step brings back what was stopped, and stops nothing.
        history: what was done before.
        path: why no order of steps leads there; None where one does (``act.rollout``).
    """

    now: float
    fleet: ServingFleet
    plan: RoutingPlan
    digest: str
    standing: Standing
    accepted: bool
    freshness: Freshness
    problems: tuple[str, ...] | None
    ground: Ground
    change: PlanDiff
    gain: Gain | None = None
    unfinished: bool = False
    finishing: bool = False
    history: History = History()
    path: Refusal | None = None

    @property
    def cold(self) -> bool:
        """Whether pods must start or stop: routing alone needs no window, dwell or budget."""
        return any(row.cold for row in self.change.rows)

    @property
    def restarts(self) -> bool:
        """Whether groups that serve must stop for it, or may still have to."""
        return self.unfinished or any(row.cold and row.change is not Change.GROUP_ADDED for row in self.change.rows)
