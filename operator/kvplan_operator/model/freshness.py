"""Whether the measurements of a fleet are fresh and complete enough to plan from.

Input: a ``Snapshot``. Output: status, reason and message of the condition ``MetricsFresh``. The first trouble in the
order of this file is told. A fleet whose classes all state rate and lengths needs no measurement, so that it can be
planned before a router exists. Messages hold no number that moves by itself. Pure.
"""

from collections.abc import Callable

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.fleet_queries import rate_window_seconds
from kvplan_operator.model.problem import belongs
from kvplan_operator.model.remembered import remembered_lengths
from kvplan_operator.model.snapshot import ClassMeasured, Fact, Quality, Snapshot

MetricsVerdict = tuple[ConditionStatus, ConditionReason, str]
Trouble = tuple[ConditionReason, str]

STALE_GRACE_SECONDS = 120.0
"""Age up to which the last good value still counts as fresh: one slow answer flips no condition."""
LEAST_SAMPLES = 30
"""Finished requests below which output lengths are not known."""
BYPASS_SHARE = 0.9
"""Share of the engines' finish rate that routers must count (09-contracts)."""
LEAST_FINISHED = 50
"""Finished requests below which the two rates are not held against each other."""


def metrics_verdict(snapshot: Snapshot) -> MetricsVerdict:
    """The condition MetricsFresh of a fleet."""
    checks: tuple[Callable[[Snapshot], Trouble | None], ...] = (_absent, _stale, _bypassed, _partial, _few)
    for check in checks:
        trouble = check(snapshot)
        if trouble is not None:
            return ConditionStatus.FALSE, *trouble
    if not _needing(snapshot):
        stated = "every class states its rate and its output lengths; nothing has to be measured"
        return ConditionStatus.TRUE, ConditionReason.AS_PLANNED, stated
    return ConditionStatus.TRUE, ConditionReason.AS_PLANNED, "rates and lengths of every class are recent"


def needs_rate(request_class: RequestClass) -> bool:
    """Whether the class's rate has to be measured."""
    return request_class.spec.arrivals.requests_per_second_milli is None


def needs_lengths(request_class: RequestClass) -> bool:
    """Whether the class's output lengths have to be measured."""
    given = request_class.spec.output_lengths
    return given.quantiles is None and given.config_map_ref is None


def _needing(snapshot: Snapshot) -> list[tuple[RequestClass, Fact[ClassMeasured] | None]]:
    """The fleet's classes that something has to be measured of, by name, with what was."""
    own = sorted((c for c in snapshot.classes if belongs(c, snapshot.fleet)), key=lambda c: c.metadata.name)
    wanting = [c for c in own if needs_rate(c) or needs_lengths(c)]
    return [(c, snapshot.measured.classes.get(c.metadata.name)) for c in wanting]


def _absent(snapshot: Snapshot) -> Trouble | None:
    for request_class, fact in _needing(snapshot):
        if fact is None or fact.value is None:
            why = fact.detail if fact is not None else "nothing was measured yet"
            remedy = "or state arrivals.requestsPerSecondMilli and outputLengths in its spec"
            return ConditionReason.RATES_UNAVAILABLE, f"class {request_class.metadata.name}: {why}; {remedy}"
    return None


def _stale(snapshot: Snapshot) -> Trouble | None:
    for request_class, fact in _needing(snapshot):
        if fact is not None and fact.quality is Quality.STALE and fact.age_seconds(snapshot.now) > STALE_GRACE_SECONDS:
            return ConditionReason.METRICS_STALE, f"class {request_class.metadata.name}: {fact.detail}"
    return None


def _bypassed(snapshot: Snapshot) -> Trouble | None:
    """Engines that finish more than the routers count are reached past the routers."""
    finished, counted = snapshot.measured.engine_finish_rate, snapshot.measured.router_rate
    if finished is None or counted is None or finished.value is None or counted.value is None:
        return None
    comparable = finished.quality is Quality.VALUE and counted.quality is Quality.VALUE
    if not comparable or finished.value * rate_window_seconds(snapshot.fleet) < LEAST_FINISHED:
        return None
    if counted.value >= BYPASS_SHARE * finished.value:
        return None
    words = "engines finish more requests than the routers count: send all requests through a router"
    return ConditionReason.ROUTER_BYPASSED, words


def _partial(snapshot: Snapshot) -> Trouble | None:
    for request_class, fact in _needing(snapshot):
        if fact is not None and fact.quality is Quality.PARTIAL:
            return ConditionReason.METRICS_PARTIAL, f"class {request_class.metadata.name}: {fact.detail}"
    return None


def _few(snapshot: Snapshot) -> Trouble | None:
    for request_class, fact in _needing(snapshot):
        if needs_lengths(request_class) and _samples(request_class, fact) < LEAST_SAMPLES:
            why = f"fewer than {LEAST_SAMPLES} finished requests were seen in uncertainty.windowSeconds"
            remedy = "send it traffic, or give outputLengths in its spec"
            return ConditionReason.TOO_FEW_SAMPLES, f"class {request_class.metadata.name}: {why}; {remedy}"
    return None


def _samples(request_class: RequestClass, fact: Fact[ClassMeasured] | None) -> int:
    """Requests behind the lengths; those that the status remembers where none was seen since."""
    seen = fact.value.samples if fact is not None and fact.value is not None else 0
    if seen == 0 and remembered_lengths(request_class) is not None:
        return request_class.status.samples or 0
    return seen
