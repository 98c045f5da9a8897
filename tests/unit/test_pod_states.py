"""Engines and routers are asked directly, and what they answer is checked before it is believed."""

import asyncio
import gzip
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from kvplan_operator.kube.answers import Object
from kvplan_operator.model.engine_pods import endpoint
from kvplan_operator.model.engine_text import engine_state
from kvplan_operator.model.snapshot import EngineState, Fact, Quality, RouterState
from kvplan_operator.observe.engines import look_at_engines
from kvplan_operator.observe.http import HttpLimits, PodHttp
from kvplan_operator.observe.profile import PrometheusSettings
from kvplan_operator.observe.routers import look_at_routers
from kvplan_solver.cacheroute.router_state import RouterMode, RouterReport, write_state
from kvplan_solver.errors import InvalidInput
from tests.fake_prometheus import Answering, body, serving, silent_until
from tests.measuring import NOW, router_pod
from tests.planning import fleet, own_pod

RUNNING = 'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
WAITING = 'vllm:num_requests_waiting{engine="0",model_name="m"} 2.0\n'
REASONS = 'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 9.0\n'
CACHE = 'vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="1024",num_gpu_blocks="65"} 1.0\n'
PAGE = f"# HELP x y\nother_metric 5\n{RUNNING}{WAITING}{REASONS}{CACHE}"
REPORT = RouterReport(
    identity="router-0",
    mode=RouterMode.PLAN,
    epoch=1_700_000_000,
    generation=7,
    fingerprint="0123456789abcdef",
    in_flight={"tp1-0": 2},
    reserved={"tp1-0": 900},
    table_errors={"digest": 1, "older": 2},
)
STATE = body(write_state(REPORT).encode())
ROUTER = RouterState("router-0", "plan", 1_700_000_000, 7, "0123456789abcdef", {"tp1-0": 2}, {"tp1-0": 900}, 3)

PAGES: dict[str, tuple[str, EngineState]] = {
    "a live page": (PAGE, EngineState(1024, 3, 2, "0.32.0")),
    "before the cache is there": (
        RUNNING + WAITING + CACHE.replace('"65"', '"None"'),
        EngineState(None, 3, 2, "0.32.0"),
    ),
    "two engines in one server": (
        PAGE + (RUNNING + WAITING + CACHE.replace('"65"', '"33"')).replace('engine="0"', 'engine="1"'),
        EngineState(512, 6, 4, "0.32.0"),
    ),
}


@pytest.mark.parametrize(("text", "state"), PAGES.values(), ids=PAGES.keys())
def test_a_page_tells_load_and_capacity(text: str, state: EngineState) -> None:
    assert engine_state(text, "0.32.0") == state


NO_ENGINE = {
    "another program's metrics": "up 1\n",
    "an empty page": "",
    "half a line": 'vllm:num_requests_running{engine="0"',
    "a count that is no number": RUNNING.replace("3.0", "many") + WAITING,
    "NaN": RUNNING.replace("3.0", "NaN") + WAITING,
    "less than nothing": RUNNING.replace("3.0", "-1") + WAITING,
}


@pytest.mark.parametrize("text", NO_ENGINE.values(), ids=NO_ENGINE.keys())
def test_a_page_without_an_engine_is_no_idle_engine(text: str) -> None:
    with pytest.raises(InvalidInput, match="engine"):
        engine_state(text, None)


def addressed(pod: dict[str, Any], ip: str, **annotations: str) -> dict[str, Any]:
    pod["status"] = {**pod["status"], "podIP": ip, "phase": "Running"}
    pod["metadata"] = {**pod["metadata"], "annotations": annotations}
    return pod


def ports(*named: tuple[str, Any]) -> dict[str, Any]:
    listed = [{"name": name, "containerPort": port} for name, port in named]
    return {"metadata": {}, "spec": {"containers": [{"ports": listed}]}, "status": {"podIP": "10.0.0.9"}}


def annotated(value: str) -> dict[str, Any]:
    return ports(("http", 1)) | {"metadata": {"annotations": {"prometheus.io/port": value}}}


def at(ip: str | None) -> dict[str, Any]:
    return {"metadata": {}, "spec": {}, "status": {"podIP": ip}}


ENDPOINTS: dict[str, tuple[dict[str, Any], str | None]] = {
    "no port is named": (ports(), "http://10.0.0.9:8000"),
    "a port named http": (ports(("grpc", 1), ("http", 8080)), "http://10.0.0.9:8080"),
    "http before metrics": (ports(("metrics", 9), ("http", 8080)), "http://10.0.0.9:8080"),
    "a port named metrics": (ports(("metrics", 9400)), "http://10.0.0.9:9400"),
    "the annotation wins": (annotated("9999"), "http://10.0.0.9:9999"),
    "an annotation that is no port": (annotated("80; rm"), None),
    "an annotation beyond the ports": (annotated("70000"), None),
    "IPv6": (at("fd00::1"), "http://[fd00::1]:8000"),
    "no address yet": (at(None), None),
    "an address that is a name": (at("metadata.internal"), None),
    "a machine's own services": (at("169.254.169.254"), None),
    "every address": (at("0.0.0.0"), None),  # noqa: S104 - refused
}


@pytest.mark.parametrize(("pod", "expected"), ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_metrics_are_where_the_pod_says(pod: dict[str, Any], expected: str | None) -> None:
    assert endpoint(pod, 8000) == expected


def engine_server(page: str = PAGE, version: Answering | None = None) -> Answering:
    told = version or body(b'{"version": "0.32.0"}')
    return lambda handler: (told if handler.path == "/version" else body(page.encode()))(handler)


def engines(url: str, *, before: dict[str, Fact[EngineState]] | None = None, **limits: Any) -> dict[str, Any]:
    pod = addressed(own_pod("engine-0"), "127.0.0.1", **{"prometheus.io/port": url.rsplit(":", 1)[1]})
    pod["metadata"]["uid"] = "u-0"

    async def run() -> dict[str, Fact[EngineState]]:
        async with PodHttp(HttpLimits(**limits)) as http:
            return await look_at_engines(fleet(), [pod], http, NOW, before or {})

    return asyncio.run(run())


def test_an_engine_is_asked_for_its_load_and_once_for_its_version() -> None:
    with serving(engine_server()) as seen:
        first = engines(seen.url)
        again = engines(seen.url, before=first)
    assert first == again == {"u-0": Fact(EngineState(1024, 3, 2, "0.32.0"), Quality.VALUE, "Pod engine-0", NOW)}
    assert len(seen.parameters) == 3


VERSIONS: dict[str, Answering] = {
    "no such page": body(b"", 404),
    "no JSON": body(b"<html>"),
    "a list": body(b"[1]"),
    "a number": body(b'{"version": 3}'),
}


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_an_engine_may_keep_its_version_to_itself(version: Answering) -> None:
    with serving(engine_server(version=version)) as seen:
        fact = engines(seen.url)["u-0"]
    assert (fact.quality, fact.value) == (Quality.VALUE, EngineState(1024, 3, 2, None))


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"# more\n" * 10_000)
    except OSError:
        return


SILENT: dict[str, tuple[Answering, str]] = {
    "an error": (body(b"", 500), "HTTP 500"),
    "a redirect": (body(b"", 302, Location="http://127.0.0.1:1/"), "HTTP 302"),
    "another program": (body(b"up 1\n"), "point the metrics port at a vLLM server"),
    "compressed though nobody asked": (body(gzip.compress(PAGE.encode()), Content_Encoding="gzip"), "no usable answer"),
    "no text": (body(b"\xff\xfe"), "no usable answer"),
    "an answer without end": (endless, "longer than 65536 bytes"),
}


@pytest.mark.parametrize(("answering", "words"), SILENT.values(), ids=SILENT.keys())
def test_an_engine_that_says_nothing_usable_keeps_its_last_state(answering: Answering, words: str) -> None:
    before = {"u-0": Fact(EngineState(1024, 3, 2, "0.32.0"), Quality.VALUE, "Pod engine-0", NOW - 60)}
    with serving(answering) as seen:
        new, old = (engines(seen.url, before=given, max_bytes=65_536)["u-0"] for given in ({}, before))
    assert (new.value, new.quality) == (None, Quality.NO_DATA)
    assert (old.value, old.quality, old.seen) == (EngineState(1024, 3, 2, "0.32.0"), Quality.STALE, NOW - 60)
    assert words in new.detail
    assert words in old.detail


def test_an_engine_that_does_not_answer_costs_no_more_than_the_timeout() -> None:
    done = threading.Event()
    with serving(silent_until(done)) as seen:
        fact = engines(seen.url, seconds=0.2)["u-0"]
        done.set()
    assert fact.detail == "no answer within 0.2 s"


def routers(
    url: str,
    allowed: Callable[[str], tuple[str, ...]] = lambda url: (url,),
    conditions: Sequence[Object] = ({"type": "Ready", "status": "True"},),
    **routing: Any,
) -> dict[str, Fact[RouterState]]:
    pod = addressed(
        router_pod(conditions=list(conditions)), "127.0.0.1", **{"prometheus.io/port": url.rsplit(":", 1)[1]}
    )

    async def run() -> dict[str, Fact[RouterState]]:
        async with PodHttp() as http:
            settings = PrometheusSettings(allowed_urls=allowed(url))
            return await look_at_routers(fleet(routing=routing), [pod], http, settings, NOW, {})

    return asyncio.run(run())


def test_every_live_router_has_a_fact_by_its_pod() -> None:
    with serving(STATE) as seen:
        assert routers(seen.url) == {"router-0": Fact(ROUTER, Quality.VALUE, "router router-0", NOW)}


def test_a_router_that_is_not_ready_yet_is_asked_for_its_name() -> None:
    conditions = [{"type": "Ready", "status": "False"}]
    with serving(STATE) as seen:
        assert routers(seen.url, conditions=conditions)["router-0"].value == ROUTER


NO_STATE: dict[str, Answering] = {
    "no JSON": body(b"<html>"),
    "half of it": body(write_state(REPORT)[:50].encode()),
    "deep nonsense": body(b"[" * 100_000),
    "another document": body(b"{}"),
    "a count that is a text": body(write_state(REPORT).replace(":900", ':"900"').encode()),
    "an error": body(b"", 500),
}


@pytest.mark.parametrize("answering", NO_STATE.values(), ids=NO_STATE.keys())
def test_a_router_that_answers_nonsense_is_a_fact_without_value(answering: Answering) -> None:
    with serving(answering) as seen:
        fact = routers(seen.url)["router-0"]
    assert (fact.value, fact.quality) == (None, Quality.NO_DATA)
    assert fact.detail


def test_a_router_outside_the_cluster_is_asked_only_where_the_operator_allows_it() -> None:
    with serving(STATE) as seen:
        asked = routers(seen.url, routers={"urls": [seen.url]})
        count = len(seen.parameters)
        refused = routers(seen.url, lambda _: (), routers={"urls": [seen.url]})
    assert asked[seen.url].value == ROUTER
    assert refused[seen.url].value is None
    assert len(seen.parameters) == count + 1
