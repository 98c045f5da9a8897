"""RequestClass.status: what was measured of a class, what is planned with, and the reservation in force.

Input: a frozen ``ClassView``. Output: the status to write, merged with the stored one. Rate, mean, radius and
quantiles are those that plans are made from (spec beats measurement; measurements settled), so that the status also
is what a restarted operator settles on. Pure. Source: 01-api (RequestClass), 02-solver §2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvplan_operator.api.common import Quantile
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_status import Freshness, RequestClassStatus
from kvplan_operator.model.snapshot import ClassMeasured, Fact, Quality
from kvplan_operator.plan.settled import LEVELS
from kvplan_operator.status.merge import merge
from kvplan_operator.status.said import Said, conditions, flag, nothing_wrong
from kvplan_solver.instance import Ambiguity, ClassInput
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.units import MILLI, to_milli

_FRESHNESS = {
    Quality.VALUE: Freshness.FRESH,
    Quality.PARTIAL: Freshness.PARTIAL,
    Quality.STALE: Freshness.STALE,
    Quality.NO_DATA: Freshness.NO_DATA,
}
_METRICS = {
    Quality.VALUE: (True, ConditionReason.NOTHING_WRONG),
    Quality.PARTIAL: (False, ConditionReason.METRICS_PARTIAL),
    Quality.STALE: (False, ConditionReason.METRICS_STALE),
    Quality.NO_DATA: (False, ConditionReason.RATES_UNAVAILABLE),
}


@dataclass(frozen=True, eq=False)
class ClassView:
    """What one tick knows of a class.

    Attributes:
        request_class: the class with its stored status.
        now: seconds since the epoch.
        fleet_name: the fleet it belongs to; None: no fleet selects it.
        fact: what was measured of it; None where nothing was looked for.
        planned: what plans are made from; None where that is not known yet.
        ambiguity: the fleet's.
        reservation_tokens: KV tokens held per request, in force now; None where no plan is.
    """

    request_class: RequestClass
    now: float
    fleet_name: str | None
    fact: Fact[ClassMeasured] | None = None
    planned: ClassInput | None = None
    ambiguity: Ambiguity = Ambiguity.WASSERSTEIN_1
    reservation_tokens: int | None = None


def class_status(view: ClassView) -> dict[str, Any]:
    """The status to write; the stored one where nothing changed."""
    generation = view.request_class.metadata.generation or 0
    measured = None if view.fact is None else view.fact.value
    fresh = RequestClassStatus(
        observed_generation=generation,
        conditions=conditions(_said(view), generation, view.now),
        fleet=view.fleet_name,
        requests_per_second_milli=_rate_milli(view),
        samples=None if measured is None else measured.samples,
        freshness=None if view.fact is None else _FRESHNESS[view.fact.quality],
        reservation_tokens=view.reservation_tokens,
        observed=None if measured is None else measured.latency,
        **({} if view.planned is None else _lengths(view.planned, view.ambiguity)),
    )
    return merge(view.request_class.status.to_wire(), fresh.to_wire())


def _rate_milli(view: ClassView) -> int | None:
    if view.planned is not None:
        return to_milli(view.planned.arrival_rate)
    rate = None if view.fact is None or view.fact.value is None else view.fact.value.facts.requests_per_second
    return None if rate is None else to_milli(rate)


def _lengths(c: ClassInput, ambiguity: Ambiguity) -> dict[str, Any]:
    threshold = robust_order(c, ambiguity).shift_threshold_tokens
    radius = c.radius * c.output_tokens_mean if ambiguity is Ambiguity.SCALE else c.radius
    return {
        "mean_output_tokens": round(c.output_tokens_mean),
        "fractile_milli": to_milli(c.fractile),
        "radius_tokens": round(radius),
        "shift_threshold_tokens": None if math.isnan(threshold) else round(min(threshold, c.max_output_tokens)),
        "quantiles": tuple(_quantiles(c)),
    }


def _quantiles(c: ClassInput) -> Iterator[Quantile]:
    """16 points, the last one the longest output seen."""
    for level, tokens in zip(LEVELS, np.quantile(c.output_lengths, LEVELS), strict=True):
        yield Quantile(probability_milli=round(level * MILLI), tokens=round(float(tokens)))


def _said(view: ClassView) -> Iterator[Said]:
    yield from _kstatus(view)
    if view.fact is not None:
        fresh, reason = _METRICS[view.fact.quality]
        yield flag(ConditionType.METRICS_FRESH, fresh, reason, view.fact.detail)


def _kstatus(view: ClassView) -> Iterator[Said]:
    yield _ready(view)
    yield nothing_wrong(ConditionType.RECONCILING)
    yield nothing_wrong(ConditionType.STALLED)


def _ready(view: ClassView) -> Said:
    """Ready once looked at, with what a plan still lacks of it as the reason.

    Flux applies kinds that end in "Class" before all others and waits until they are ready: a class that waited for
    its fleet, or for traffic, would keep the fleet of the same repository out of the cluster for good.
    """
    type_ = ConditionType.READY
    if view.fleet_name is None:
        return flag(type_, True, ConditionReason.NOT_SELECTED, ConditionReason.NOT_SELECTED.sentence)
    if view.planned is None:
        why = view.fact.detail if view.fact is not None else ""
        message = why or "its rate or output lengths are not known: state them in spec or let routers measure them"
        return flag(type_, True, ConditionReason.RATES_UNAVAILABLE, message)
    return flag(type_, True, ConditionReason.AS_PLANNED, f"fleet {view.fleet_name} plans with it")
