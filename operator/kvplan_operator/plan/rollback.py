"""Whether a plan that serves worse than it promised gives way to the last good one; once, never back and forth.

Inputs: the fleet's ``Shelf``, the plan's forecast beside what was observed (both in its status), pods that crash.
Output: a frozen ``Return``, None where all is as promised. What happened is read from conditions of the plans:
``Failed`` is Unknown (WorseThanForecast) since service got worse, and True (RolledBack) once the plan was given up.
After one return under the same inputs nothing is changed by policy until a person acts. Pure. Source: 04 §5.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import ClassOutlook
from kvplan_operator.model.instants import instant, timestamp
from kvplan_operator.plan.standing import Shelf, condition_of, holds_since


@dataclass(frozen=True)
class ReturnRules:
    """How bad, and for how long.

    Attributes:
        latency_margin: mean latency above the forecast that is tolerated, as a share of it.
        overflow_margin_milli: preempted requests above the forecast that are tolerated, thousandths.
        lasting_seconds: how long it must last.
        hold_down_seconds: how long nothing is changed by policy after a return, even under new inputs.
    """

    latency_margin: float = 0.5
    overflow_margin_milli: int = 50
    lasting_seconds: float = 600.0
    hold_down_seconds: float = 3_600.0


class ReturnState(StrEnum):
    """What is to be done."""

    WATCHED = "Watched"
    """Service is worse than forecast, not long enough yet."""
    DUE = "Due"
    """The last good plan is to return (Auto), or to be accepted (Approve)."""
    HELD = "Held"
    """It returned once already: a person goes on."""


@dataclass(frozen=True)
class Return:
    """What to do about a plan that does not keep its promise.

    Attributes:
        state: what is to be done.
        digest: of the last good plan; None where there is none.
        message: why, with numbers and remedy.
        worse: how the plan in force serves worse than forecast now, for its condition Failed; empty where it does not.
    """

    state: ReturnState
    digest: str | None
    message: str
    worse: str = ""


def return_of(
    shelf: Shelf, inputs_digest: str, now: float, *, crashing: int = 0, rules: ReturnRules | None = None
) -> Return | None:
    """What to do about the plan in force.

    Args:
        shelf: the fleet's plans.
        inputs_digest: of the fleet's and classes' fields today; changing them is what lets the policy go on.
        now: seconds since the epoch.
        crashing: groups of the plan whose pods crash.
        rules: margins and times.
    """
    rules = rules or ReturnRules()
    current = shelf.plans.get(shelf.current or "")
    held = _held(shelf, inputs_digest, now, rules)
    if held is not None or current is None:
        return held
    worse = "; ".join((*worse_than_forecast(current, rules), *_crashes(crashing)))
    if not worse and not _given_up(current):
        return None
    since, good = _worse_since(current, now), last_good(shelf)
    if now - since < rules.lasting_seconds and not _given_up(current):
        until = timestamp(since + rules.lasting_seconds)
        return Return(ReturnState.WATCHED, good, f"{worse}; watched until {until}", worse)
    if good is None:
        return Return(ReturnState.HELD, None, f"{worse}; no earlier plan served well: accept another plan", worse)
    why = worse or "service was worse than forecast"
    returns = f"RoutingPlan {shelf.name_of(good)} (digest {good}) served well before"
    return Return(ReturnState.DUE, good, f"{why} since {timestamp(since)}; {returns}", why)


def last_good(shelf: Shelf) -> str | None:
    """The plan that was replaced last and did not fail; its digest."""
    replaced = [
        (since, digest)
        for digest, plan in shelf.plans.items()
        if digest != shelf.current
        and (since := holds_since(plan, ConditionType.SUPERSEDED)) is not None
        and holds_since(plan, ConditionType.FAILED) is None
    ]
    return max(replaced)[1] if replaced else None


def worse_than_forecast(plan: RoutingPlan, rules: ReturnRules) -> Iterator[str]:
    """A sentence for each class that is served worse than promised, at no more traffic than promised."""
    if plan.status.forecast is None or plan.status.observed is None:
        return
    promised = {outlook.name: outlook for outlook in plan.status.forecast.classes}
    for seen in plan.status.observed.classes:
        if seen.name in promised and not _overrun(promised[seen.name], seen):
            yield from _worse_class(promised[seen.name], seen, rules)


def _overrun(promised: ClassOutlook, seen: ClassOutlook) -> bool:
    """More traffic than planned is no fault of the plan: the next solve answers it, a return would not."""
    return seen.requests_per_second_milli > 1.1 * promised.requests_per_second_milli


def _worse_class(promised: ClassOutlook, seen: ClassOutlook, rules: ReturnRules) -> Iterator[str]:
    most = promised.mean_latency_milliseconds * (1 + rules.latency_margin)
    if promised.mean_latency_milliseconds and seen.mean_latency_milliseconds > most:
        numbers = f"{seen.mean_latency_milliseconds} ms instead of {promised.mean_latency_milliseconds} ms"
        yield f"class {seen.name} takes {numbers} on average"
    if seen.overflow_milli > promised.overflow_milli + rules.overflow_margin_milli:
        numbers = f"{seen.overflow_milli / 10:g} % instead of {promised.overflow_milli / 10:g} %"
        yield f"class {seen.name} outgrows its reservation in {numbers} of its requests"


def _crashes(crashing: int) -> Iterator[str]:
    if crashing:
        yield f"{crashing} groups crash"


def _worse_since(plan: RoutingPlan, now: float) -> float:
    condition = condition_of(plan, ConditionType.FAILED)
    known = condition is not None and condition.status is not ConditionStatus.FALSE
    return instant(condition.last_transition_time) if condition is not None and known else now


def _held(shelf: Shelf, inputs_digest: str, now: float, rules: ReturnRules) -> Return | None:
    """Whether a plan was given up under today's inputs, or a moment ago."""
    for digest, plan in sorted(shelf.plans.items()):
        since = holds_since(plan, ConditionType.FAILED)
        if since is None or digest == shelf.current or not _given_up(plan):
            continue
        if plan.spec.inputs_digest == inputs_digest or now < since + rules.hold_down_seconds:
            message = (
                f"RoutingPlan {plan.metadata.name} was given up at {timestamp(since)}: "
                "accept a plan, change the fleet or its classes, or delete that plan to let the policy go on"
            )
            return Return(ReturnState.HELD, shelf.current, message)
    return None


def _given_up(plan: RoutingPlan) -> bool:
    """Whether it was decided that the plan gives way; true of the plan in force only between two writes."""
    condition = condition_of(plan, ConditionType.FAILED)
    decided = condition is not None and condition.status is ConditionStatus.TRUE
    return condition is not None and decided and condition.reason == ConditionReason.ROLLED_BACK
