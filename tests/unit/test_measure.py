"""One whole look: queries, engines and routers together, against servers that behave as a test says."""

import asyncio
import json
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kvplan_operator.model.fleet_queries import Ask, fleet_queries
from kvplan_operator.model.series import Answer, Reply
from kvplan_operator.model.snapshot import ClusterView, Measured, Quality
from kvplan_operator.observe.measure import Sources, look_at_pods, measure
from kvplan_operator.observe.profile import PrometheusConnection, PrometheusSettings
from kvplan_solver.cacheroute.router_state import RouterReport, write_state
from tests.fake_prometheus import body, serving, vector
from tests.measuring import NOW, good, measured_class_of, router_pod
from tests.measuring import look as measured_before
from tests.planning import fleet, own_pod


def prometheus_with(replies: dict[str, Reply], **settings: Any) -> Any:
    """A server that knows the fleet's queries by their text."""
    by_text = {text: replies[ask] for ask, text in fleet_queries(fleet(), [], ["engine-0"]).items() if ask in replies}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        (query,) = parse_qs(urlsplit(handler.path).query)["query"]
        reply = by_text.get(query)
        if not isinstance(reply, Answer):
            body(json.dumps({"errorType": "x", "error": "not here"}).encode(), 503)(handler)
            return
        rows = [(dict(series.labels), str(series.value)) for series in reply.series]
        vector(rows, NOW, **settings)(handler)

    return serving(answer)


def look(url: str, previous: Measured | None = None, **prometheus: str) -> Measured:
    settings = PrometheusSettings(profiles={"default": PrometheusConnection(url=url)})
    view = ClusterView(pods=(own_pod("engine-0"), router_pod()))
    wanted = fleet(prometheus=prometheus or {"profile": "default"})

    async def run() -> Measured:
        async with Sources(settings) as sources:
            return await measure(wanted, [measured_class_of()], view, sources, NOW, previous)

    return asyncio.run(run())


def test_one_look_asks_once_per_metric_and_has_a_fact_for_everything() -> None:
    with prometheus_with(good()) as seen:
        measured = look(seen.url)
    assert sorted(seen.queries) == sorted(fleet_queries(fleet(), [], ["engine-0"]).values())
    chat = measured.classes["chat"]
    assert chat.value is not None
    assert (chat.quality, chat.source, chat.value.facts.requests_per_second) == (
        Quality.VALUE,
        "prometheus default",
        2.0,
    )
    assert measured.configurations["tp1"].quality is Quality.VALUE
    assert measured.keys is not None
    assert measured.keys.quality is Quality.VALUE
    assert measured.routers["router-0"].quality is Quality.NO_DATA


def test_one_query_that_fails_takes_only_its_own_facts_along() -> None:
    with prometheus_with({ask: reply for ask, reply in good().items() if ask != Ask.KEY_REQUESTS}) as seen:
        measured = look(seen.url)
    assert measured.keys is not None
    assert (measured.keys.quality, measured.keys.detail) == (
        Quality.NO_DATA,
        "Prometheus default: HTTP 503: not here",
    )
    assert measured.classes["chat"].quality is Quality.VALUE


def test_when_prometheus_goes_away_everything_known_stays_and_says_so() -> None:
    with prometheus_with(good()) as seen:
        known = look(seen.url)
    gone = look("http://127.0.0.1:1", known)
    assert gone.classes["chat"].quality is Quality.STALE
    assert gone.classes["chat"].value is known.classes["chat"].value
    assert gone.configurations["tp1"].value == known.configurations["tp1"].value
    assert "connection failed" in gone.classes["chat"].detail


def test_a_profile_that_does_not_exist_is_the_reason_of_the_facts() -> None:
    measured = look("http://127.0.0.1:1", profile="mine")
    assert "the operator has: default" in measured.classes["chat"].detail
    assert measured.engine_finish_rate is not None
    assert "the operator has: default" in measured.engine_finish_rate.detail


def test_a_store_that_is_away_makes_every_value_partial() -> None:
    with prometheus_with(good(), warnings=["store-2 is away"]) as seen:
        measured = look(seen.url)
    assert measured.classes["chat"].quality is Quality.PARTIAL
    assert "store-2 is away" in measured.classes["chat"].detail
    assert measured.configurations["tp1"].quality is Quality.PARTIAL


def test_a_closer_look_asks_pods_only() -> None:
    state = body(write_state(RouterReport("router-0", generation=9)).encode())
    with serving(state) as seen:
        port = seen.url.rsplit(":", 1)[1]
        pod = router_pod(podIP="127.0.0.1")
        pod["metadata"]["annotations"] = {"prometheus.io/port": port}
        before = measured_before()

        async def run() -> Measured:
            async with Sources(PrometheusSettings()) as sources:
                return await look_at_pods(fleet(), ClusterView(pods=(pod,)), sources, NOW, before)

        closer = asyncio.run(run())
    assert closer.routers["router-0"].value is not None
    assert closer.routers["router-0"].value.generation == 9
    assert closer.classes is before.classes
