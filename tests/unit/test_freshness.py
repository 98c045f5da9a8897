"""The condition MetricsFresh, one row per trouble."""

from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.model.fleet_queries import Ask, RouterPart
from kvplan_operator.model.freshness import metrics_verdict
from kvplan_operator.model.series import Answer, Reply, Unanswered
from kvplan_operator.model.snapshot import Measured, Quality, Snapshot
from tests.measuring import (
    LENGTHS,
    NOW,
    ROUTER,
    answer,
    buckets,
    good,
    look,
    measured_class_of,
    router_pod,
    snapshot,
    sums,
)
from tests.planning import own_pod, request_class

DOWN: dict[str, Reply] = dict.fromkeys(Ask, Unanswered("Prometheus test: HTTP 503"))
STATED = (request_class("chat"),)


def after_an_outage(seconds: float) -> Snapshot:
    now = NOW - 5 + seconds
    return snapshot(look(DOWN, before=look(), at=now), now=now)


def arrivals(rate: float) -> Answer:
    return sums(ROUTER | {RouterPart.ARRIVALS: rate * 600}, **{"class": "chat"})


def few(requests: float) -> Answer:
    return buckets({edge: count * requests / 1200 for edge, count in LENGTHS.items()}, **{"class": "chat"})


FRESH: dict[str, Snapshot] = {
    "everything is measured": snapshot(),
    "there is no traffic": snapshot(look(good(ROUTER_SUMS=arrivals(0), ENGINE_SUMS=sums({}, pod="x")), pods=[])),
    "the last good value is a little old": after_an_outage(120),
    "everything is stated and nothing measured": snapshot(Measured(), classes=STATED),
    "everything is stated and Prometheus is down": snapshot(look(DOWN), classes=STATED),
    "routers count nine tenths of what engines finish": snapshot(look(good(ROUTER_SUMS=arrivals(1.8)))),
    "just enough samples": snapshot(look(good(OUTPUT_TOKENS=few(30)))),
}


@pytest.mark.parametrize("given", FRESH.values(), ids=FRESH.keys())
def test_measurements_are_fresh(given: Snapshot) -> None:
    assert metrics_verdict(given)[:2] == (ConditionStatus.TRUE, ConditionReason.AS_PLANNED)


TROUBLE: dict[str, tuple[Snapshot, ConditionReason, str]] = {
    "nothing was looked at": (snapshot(Measured()), ConditionReason.RATES_UNAVAILABLE, "nothing was measured yet"),
    "Prometheus was never there": (snapshot(look(DOWN)), ConditionReason.RATES_UNAVAILABLE, "HTTP 503"),
    "no router runs": (
        snapshot(look(dict.fromkeys(Ask, Answer()))),
        ConditionReason.RATES_UNAVAILABLE,
        "start a router for the fleet and scrape it; or state arrivals.requestsPerSecondMilli",
    ),
    "the last good value is old": (after_an_outage(121), ConditionReason.METRICS_STALE, "HTTP 503"),
    "the engines finish more than the routers count": (
        snapshot(look(good(ROUTER_SUMS=arrivals(1.79)))),
        ConditionReason.ROUTER_BYPASSED,
        "send all requests through a router",
    ),
    "a router is not scraped": (
        snapshot(look(pods=[own_pod("engine-0", gpus=1), router_pod("router-9")])),
        ConditionReason.METRICS_PARTIAL,
        "router router-9",
    ),
    "too few samples": (snapshot(look(good(OUTPUT_TOKENS=few(29)))), ConditionReason.TOO_FEW_SAMPLES, "fewer than 30"),
}


@pytest.mark.parametrize(("given", "reason", "words"), TROUBLE.values(), ids=TROUBLE.keys())
def test_trouble_is_named_with_class_and_remedy(given: Snapshot, reason: ConditionReason, words: str) -> None:
    status, found, message = metrics_verdict(given)
    assert (status, found) == (ConditionStatus.FALSE, reason)
    assert words in message


def test_a_stale_count_accuses_nobody_of_a_bypass() -> None:
    low = look(good(ROUTER_SUMS=arrivals(0.1)))
    assert low.router_rate is not None
    old = replace(low, router_rate=replace(low.router_rate, quality=Quality.STALE))
    assert metrics_verdict(snapshot(old))[1] is ConditionReason.AS_PLANNED


def test_a_handful_of_requests_accuses_nobody_of_a_bypass() -> None:
    finished = answer(({"pod": "engine-0", "part": "finished"}, 49.0))
    one = look(good(ROUTER_SUMS=arrivals(0.0), ENGINE_SUMS=finished))
    assert metrics_verdict(snapshot(one))[1] is ConditionReason.AS_PLANNED


def test_the_message_holds_no_number_that_moves() -> None:
    first, later = after_an_outage(200), after_an_outage(900)
    assert metrics_verdict(first) == metrics_verdict(later)


LENGTHS_STATED: dict[str, dict[str, Any]] = {
    "a ConfigMap": {"outputLengths": {"configMapRef": {"name": "lengths", "key": "samples"}}},
    "quantiles": {"outputLengths": {"quantiles": [{"probabilityMilli": 1000, "tokens": 100}]}},
}


@pytest.mark.parametrize("spec", LENGTHS_STATED.values(), ids=LENGTHS_STATED.keys())
def test_lengths_that_are_given_need_no_samples(spec: dict[str, Any]) -> None:
    given = snapshot(look(good(OUTPUT_TOKENS=Answer())), classes=(measured_class_of(**spec),))
    assert metrics_verdict(given)[0] is ConditionStatus.TRUE
