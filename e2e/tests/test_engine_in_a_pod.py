"""The engine stand-in runs in a pod of a Deployment as vLLM would: Ready when it serves, drained when it goes."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest
from e2e.harness.simulated_nodes import NODE_KIND_LABEL, SimulatedNode
from e2e.tests.pods import apply, gone

pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with one process node."""
    with Cluster() as bed:
        process_nodes.start(bed, ProcessNode(SimulatedNode("worker-1")))
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


def deployment() -> Manifest:
    """Two engines, their command line as people write it for vLLM."""
    engine = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "command": ["vllm", "serve", "tiny", "--host", "0.0.0.0"],  # noqa: S104 - as in a pod
        "args": ["--port=8000", "--num-gpu-blocks-override=256", "--shutdown-timeout=5"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1},
    }
    pod = {"nodeSelector": {NODE_KIND_LABEL: "process"}, "containers": [engine]}
    template = {"metadata": {"labels": {"app": "chat"}}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "chat"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}, "spec": spec}


def call(address: str, path: str, body: dict[str, Any] | None = None) -> str:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"http://{address}:8000{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
        text: str = response.read().decode()
        return text


@pytest.mark.smoke
def test_two_engines_serve_and_count_each_for_itself_and_drain(cluster: Cluster, namespace: str) -> None:
    here = f"--namespace={namespace}"
    apply(cluster, namespace, deployment())
    cluster.kubectl("rollout", "status", "deployment/chat", here, "--timeout=60s")
    engines = cluster.kubectl.get("pods", here)["items"]
    first, second = (engine["status"]["podIP"] for engine in engines)
    answer = json.loads(call(first, "/v1/completions", {"model": "tiny", "prompt": "hello", "max_tokens": 4}))
    assert answer["usage"]["completion_tokens"] <= 4
    served = 'vllm:generation_tokens_total{engine="0",model_name="tiny"} '
    assert f"{served}{float(answer['usage']['completion_tokens'])}" in call(first, "/metrics")
    assert f"{served}0.0" in call(second, "/metrics")
    cluster.kubectl("scale", "deployment/chat", "--replicas=0", here)
    for engine in engines:
        gone(cluster, namespace, engine["metadata"]["name"])
