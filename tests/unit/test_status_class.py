"""RequestClass.status: what was measured, what is planned with, and when a class is ready."""

from typing import Any

import numpy as np
import pytest

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_status import ObservedLatency, RequestClassStatus
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.snapshot import ClassMeasured, Fact, Quality
from kvplan_operator.status.request_class import ClassView, class_status
from kvplan_solver.instance import Ambiguity, ClassInput
from tests.planning import demo, request_class
from tests.routing_plans import NOW

CHAT = request_class("chat")
PLANNED = demo().instance.classes[0]


def fact(
    rate: float = 4.0, quality: Quality = Quality.VALUE, detail: str = "", scale: float = 1.0
) -> Fact[ClassMeasured]:
    latency = ObservedLatency(mean_milliseconds=round(800 * scale), p99_milliseconds=round(2_000 * scale))
    measured = ClassMeasured(ClassFacts(requests_per_second=rate), round(12_345 * scale), latency)
    return Fact(None if quality is Quality.NO_DATA else measured, quality, "prometheus default", NOW, detail)


def view(**parts: Any) -> ClassView:
    usual: dict[str, Any] = {"fleet_name": "demo", "fact": fact(), "planned": PLANNED, "reservation_tokens": 1_328}
    return ClassView(parts.pop("request_class", CHAT), parts.pop("now", NOW), **(usual | parts))


def words(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]}


def test_a_class_shows_what_is_planned_with_and_what_was_seen() -> None:
    status = class_status(view())
    assert status["fleet"] == "demo"
    assert status["requestsPerSecondMilli"] == 4_000
    assert status["samples"] == 12_300
    assert status["freshness"] == "Fresh"
    assert status["fractileMilli"] == 909
    assert status["reservationTokens"] == 1_328
    assert status["observed"] == {"meanMilliseconds": 800, "p99Milliseconds": 2_000}
    assert abs(status["meanOutputTokens"] - PLANNED.output_tokens_mean) <= 1
    assert status["radiusTokens"] == round(PLANNED.radius)


def test_lengths_are_sixteen_ascending_points_up_to_the_longest() -> None:
    points = class_status(view())["quantiles"]
    tokens = [point["tokens"] for point in points]
    assert len(points) == 16
    assert points[-1] == {"probabilityMilli": 1_000, "tokens": round(PLANNED.output_lengths[-1])}
    assert tokens == sorted(tokens)


def test_a_scale_has_no_threshold_and_its_radius_is_shown_in_tokens() -> None:
    values = {name: getattr(PLANNED, name) for name in PLANNED.__dataclass_fields__} | {"radius": 0.1}
    status = class_status(view(planned=ClassInput(**values), ambiguity=Ambiguity.SCALE))
    assert "shiftThresholdTokens" not in status
    assert status["radiusTokens"] == round(0.1 * PLANNED.output_tokens_mean)


READY: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "a class with everything known is ready": ({}, ("True", "AsPlanned")),
    "a class of no fleet keeps no fleet waiting": ({"fleet_name": None, "fact": None}, ("True", "NotSelected")),
    "a class without rates keeps no fleet waiting": (
        {"planned": None, "fact": fact(quality=Quality.NO_DATA, detail="no router counts it")},
        ("True", "RatesUnavailable")),
    "a class that states its numbers needs no measurement": ({"fact": None}, ("True", "AsPlanned")),
}  # fmt: skip


@pytest.mark.parametrize("sentence", READY)
def test_ready(sentence: str) -> None:
    given, ready = READY[sentence]
    found = words(class_status(view(**given)))
    assert found["Ready"] == ready
    assert found["Stalled"] == ("False", "NothingWrong")
    assert found["Reconciling"] == ("False", "NothingWrong")


QUALITIES = {
    Quality.VALUE: ("Fresh", ("True", "NothingWrong")),
    Quality.PARTIAL: ("Partial", ("False", "MetricsPartial")),
    Quality.STALE: ("Stale", ("False", "MetricsStale")),
    Quality.NO_DATA: ("NoData", ("False", "RatesUnavailable")),
}


@pytest.mark.parametrize("quality", QUALITIES)
def test_freshness(quality: Quality) -> None:
    status = class_status(view(fact=fact(quality=quality)))
    assert (status["freshness"], words(status)["MetricsFresh"]) == QUALITIES[quality]


def stored(status: dict[str, Any]) -> RequestClass:
    return CHAT.model_copy(update={"status": RequestClassStatus.model_validate(status)})


def test_noise_of_five_per_cent_writes_nothing() -> None:
    noise = np.random.default_rng(3)
    written = class_status(view())
    for minute in range(120):
        seen = fact(rate=4.0 * noise.uniform(0.95, 1.05), scale=noise.uniform(0.95, 1.05))
        assert class_status(view(request_class=stored(written), fact=seen, now=NOW + 60 * minute)) == written


def test_traffic_that_stops_is_written_at_once() -> None:
    written = class_status(view(planned=None))
    still = class_status(view(request_class=stored(written), planned=None, fact=fact(rate=0.0)))
    assert (written["requestsPerSecondMilli"], still["requestsPerSecondMilli"]) == (4_000, 0)
