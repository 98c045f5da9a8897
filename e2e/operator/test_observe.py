"""A fleet is measured through a real Prometheus: real queries, a real scrape, engines that count like vLLM."""

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest
from e2e.harness.prometheus import query
from e2e.harness.simulated_nodes import NODE_KIND_LABEL, SimulatedNode
from e2e.tests.support import eventually
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.class_measurement import IDLE_SECONDS
from kvplan_operator.model.freshness import metrics_verdict
from kvplan_operator.model.observed import planning_inputs
from kvplan_operator.model.snapshot import ClusterView, Measured, Quality, Snapshot
from kvplan_operator.observe.measure import Sources, measure
from kvplan_operator.observe.profile import PrometheusConnection, PrometheusSettings
from kvplan_operator.plan.engine_flags import TOKEN_GRID
from kvplan_solver.cacheroute.router_state import RouterMode, RouterReport, write_state

pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

ROUTER_ADDRESS = "127.11.12.14"
REQUESTS, PROMPT, OUTPUT = 40, "word " * 60, 30
KEY = "00000000000000ff"


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with one process node of four GPUs."""
    with Cluster() as bed:
        process_nodes.start(bed, ProcessNode(SimulatedNode("worker-1", gpus=4)))
        bed.kubectl.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}})
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


class RouterMetrics:
    """The series that a router of one fleet exports."""

    def __init__(self, fleet: str) -> None:
        self.registry = CollectorRegistry()
        tokens = [float(edge) for edge in TOKEN_GRID if edge <= 8192]
        seconds = [0.001 * 2**step for step in range(16)]
        labels = {"fleet": fleet, "class": "chat"}

        def histogram(name: str, edges: list[float]) -> Histogram:
            family = Histogram(f"kvplan_router_{name}", "x", tuple(labels), buckets=edges, registry=self.registry)
            return family.labels(*labels.values())

        requests = Counter("kvplan_router_requests", "x", (*labels, "outcome"), registry=self.registry)
        keys = Counter("kvplan_router_key_requests", "x", (*labels, "key"), registry=self.registry)
        error = Gauge("kvplan_router_key_error", "x", (*labels, "key"), registry=self.registry)
        self.requests, self.keys = requests.labels(*labels.values(), "cold"), keys.labels(*labels.values(), KEY)
        error.labels(*labels.values(), KEY).set(1)
        requests.labels(fleet, "own", "cold")  # a class without traffic counts zero
        self.gaps, self.latency = histogram("interarrival_seconds", seconds), histogram("latency_seconds", seconds)
        self.prompts, self.outputs = histogram("prompt_tokens", tokens), histogram("output_tokens", tokens)
        self.reuse = histogram("reuse_gap_seconds", seconds)

    def arrived(self, gap: float) -> None:
        """Count one request."""
        self.requests.inc()
        self.keys.inc()
        self.gaps.observe(gap)
        self.prompts.observe(len(PROMPT))
        self.reuse.observe(gap)

    def finished(self, output: int, seconds: float) -> None:
        """Count its answer."""
        self.outputs.observe(output)
        self.latency.observe(seconds)


@contextmanager
def router_serving(metrics: RouterMetrics) -> Iterator[int]:
    """The router's port for metrics and state, on its pod's address."""
    state = write_state(RouterReport("router-0", RouterMode.OBSERVE, epoch=1, generation=2)).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = state if self.path == "/state" else generate_latest(metrics.registry)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((ROUTER_ADDRESS, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def router_pod(port: int) -> Manifest:
    """The router's pod, on a node whose kubelet the test plays."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "router-0",
            "labels": {"app.kubernetes.io/name": "kvplan-router"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)},
        },
        "spec": {"nodeName": "elsewhere", "containers": [{"name": "router", "image": "kvplan-router"}]},
    }


def run_router(cluster: Cluster, namespace: str, port: int) -> None:
    here = f"--namespace={namespace}"
    cluster.kubectl.apply(router_pod(port), options=[here])
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"phase": "Running", "podIP": ROUTER_ADDRESS, "podIPs": [{"ip": ROUTER_ADDRESS}], "conditions": [ready]}
    cluster.kubectl("patch", "pod", "router-0", here, "--subresource=status", "-p", json.dumps({"status": status}))


def engine_deployment() -> Manifest:
    """One group of the configuration ``tp1``."""
    engine = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "command": ["vllm", "serve", "tiny", "--host", "0.0.0.0"],  # noqa: S104 - as in a pod
        "args": ["--port=8000", "--num-gpu-blocks-override=256", "--block-size=16", "--max-model-len=1024"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1},
    }
    labels = {"app": "demo", "kvplan.dev/fleet": "demo", "kvplan.dev/configuration": "tp1"}
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": "8000"}
    pod = {"nodeSelector": {NODE_KIND_LABEL: "process"}, "containers": [engine]}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "demo"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "demo-tp1"}, "spec": spec}


def fleet_in(namespace: str) -> ServingFleet:
    configuration = {"name": "tp1", "tensorParallel": 1, "maxSequences": 16}
    spec = {
        "model": {"name": "tiny"},
        "nodes": {"selector": {"matchLabels": {NODE_KIND_LABEL: "process"}}},
        "configurations": [configuration],
        "uncertainty": {"radius": {"auto": True}},
    }
    return ServingFleet.model_validate({"metadata": {"name": "demo", "namespace": namespace}, "spec": spec})


def class_in(namespace: str, name: str = "chat", **spec: Any) -> RequestClass:
    metadata = {"name": name, "namespace": namespace, "labels": {"kvplan.dev/fleet": "demo"}}
    plain = {"slo": {"latencyMilliseconds": 5000}, "tokens": {"maxOutput": 512}}
    return RequestClass.model_validate({"metadata": metadata, "spec": plain | spec})


def send_traffic(address: str, metrics: RouterMetrics) -> None:
    """Requests one after another, each counted as a router counts it."""
    before = time.monotonic()
    for number in range(REQUESTS):
        now = time.monotonic()
        metrics.arrived(now - before)
        before = now
        body = {"model": "tiny", "prompt": f"{number} {PROMPT}", "max_tokens": OUTPUT, "ignore_eos": True}
        request = urllib.request.Request(
            f"http://{address}:8000/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - the engine's own address
            usage = json.load(response)["usage"]
        metrics.finished(usage["completion_tokens"], time.monotonic() - now)


class Look:
    """Looks at the fleet as the operator does, again and again."""

    def __init__(self, cluster: Cluster, namespace: str, url: str) -> None:
        self.cluster, self.url, self.namespace = cluster, url, namespace
        self.fleet, self.measured = fleet_in(namespace), Measured()
        mine = {"metric": "vllm:request_generation_tokens", "matchLabels": {"model_name": "tiny"}}
        self.classes = (class_in(namespace), class_in(namespace, "own", outputLengths={"prometheus": mine}))

    def view(self) -> ClusterView:
        nodes, pods = (self.cluster.kubectl.get(kind, "--all-namespaces")["items"] for kind in ("nodes", "pods"))
        return ClusterView(nodes=tuple(nodes), pods=tuple(pods))

    def once(self) -> Measured:
        settings = PrometheusSettings(profiles={"default": PrometheusConnection(url=self.url)})

        async def run() -> Measured:
            async with Sources(settings) as sources:
                return await measure(self.fleet, self.classes, self.view(), sources, time.time(), self.measured)

        self.measured = asyncio.run(run())
        return self.measured

    def snapshot(self) -> Snapshot:
        chat = self.classes[:1]
        return Snapshot(time.time(), self.fleet, "1", chat, (), self.view(), self.measured)


def scraped_classes(url: str) -> set[str]:
    """Classes whose counter Prometheus has."""
    return {series["metric"]["class"] for series in query(url, "kvplan_router_requests_total")}


def counted(look: Look) -> bool:
    """Whether the whole traffic has been scraped."""
    measured = look.once()
    chat, group = measured.classes["chat"], measured.configurations["tp1"]
    known = chat.value is not None and chat.quality is Quality.VALUE and group.value is not None
    if not known or chat.value is None or group.value is None:
        return False
    return chat.value.samples >= REQUESTS - 1 and group.value.decode_seconds_per_token is not None


def test_a_fleet_is_measured_and_can_be_planned_from_what_was_measured(cluster: Cluster, namespace: str) -> None:
    url, here = cluster.start_prometheus(), f"--namespace={namespace}"
    metrics = RouterMetrics(f"{namespace}/demo")
    with router_serving(metrics) as port:
        run_router(cluster, namespace, port)
        cluster.kubectl.apply(engine_deployment(), options=[here])
        cluster.kubectl("rollout", "status", "deployment/demo-tp1", here, "--timeout=60s")
        look = Look(cluster, namespace, url)
        idle = "both are scraped, at rest"
        eventually(lambda: scraped_classes(url) == {"chat", "own"}, idle)
        eventually(lambda: (rate := look.once().engine_finish_rate) is not None and rate.value == 0.0, idle)
        (engine,) = cluster.kubectl.get("pods", here, "--selector=app=demo")["items"]
        send_traffic(engine["status"]["podIP"], metrics)
        eventually(lambda: counted(look), "the traffic is measured")
        idle = "a class that nobody asks for counts as idle"
        eventually(lambda: look.once().classes["own"].quality is Quality.VALUE, idle, IDLE_SECONDS + 30)
    measured = look.measured
    chat, group = measured.classes["chat"].value, measured.configurations["tp1"].value
    assert chat is not None
    assert group is not None
    assert group.kv_capacity_tokens == 255 * 16
    assert group.prefill_seconds_per_token is not None
    assert 1 <= (group.batch or 1) < 2
    assert chat.facts.output_lengths is not None
    assert 24 <= chat.facts.output_lengths.min() <= OUTPUT <= chat.facts.output_lengths.max() <= 32
    assert chat.facts.prompt_mean == pytest.approx(len(PROMPT), rel=0.05)
    assert chat.facts.arrival_scv is None or chat.facts.arrival_scv < 1
    own = measured.classes["own"].value
    assert own is not None
    assert own.facts.requests_per_second == 0.0
    assert own.facts.output_lengths is not None
    assert 20 <= own.facts.output_lengths.min() <= OUTPUT <= own.facts.output_lengths.max() <= 50
    assert measured.keys is not None
    assert [key.key for key in measured.keys.value or ()] == [255]
    assert measured.routers["router-0"].quality is Quality.VALUE
    (state,) = measured.engines.values()
    assert state.value is not None
    assert (state.value.kv_capacity_tokens, state.value.version) == (255 * 16, "0.32.0+standin")
    assert metrics_verdict(look.snapshot())[2] == "rates and lengths of every class are recent"
    problem = planning_inputs(look.snapshot()).problem()
    assert problem.instance.configurations[0].kv_capacity_tokens == 255 * 16
    assert problem.instance.classes[0].arrival_rate > 0
