"""Prometheus finds pods through the API server with the least rights and scrapes them every second."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from e2e.harness import prometheus, prometheus_binary
from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Kubectl, Manifest
from e2e.harness.prometheus import query
from e2e.tests.support import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

ADDRESS = "127.11.12.13"
ACCOUNT = f"system:serviceaccount:{prometheus.NAMESPACE}:{prometheus.SERVICE_ACCOUNT}"


class Engine(BaseHTTPRequestHandler):
    """Answers every path with one metric."""

    def do_GET(self) -> None:
        body = b'num_requests_running{model_name="chat"} 7\n'
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def engine_port() -> Iterator[int]:
    with ThreadingHTTPServer((ADDRESS, 0), Engine) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def url(cluster: Cluster) -> str:
    return cluster.start_prometheus()


def pod(name: str, port: int, scrape: str = "true") -> Manifest:
    """A pod on a node that nobody plays the kubelet of: the test writes its status."""
    annotations = {"prometheus.io/scrape": scrape, "prometheus.io/port": str(port)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": "elsewhere", "containers": [{"name": "vllm", "image": "vllm:1"}]},
    }


def run_at(cluster: Cluster, namespace: str, name: str, address: str) -> None:
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", "pod", name, f"--namespace={namespace}", "--subresource=status", "-p", patch)


@pytest.fixture
def node(cluster: Cluster) -> Iterator[None]:
    cluster.kubectl.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}})
    yield
    cluster.kubectl("delete", "node", "elsewhere")


@pytest.mark.usefixtures("node")
def test_an_annotated_pod_on_a_loopback_address_is_scraped_every_second(
    cluster: Cluster, namespace: str, url: str, engine_port: int
) -> None:
    named = [("engine", "true", ADDRESS), ("quiet", "false", ADDRESS), ("simulated", "true", "10.0.0.9")]
    for name, scrape, address in named:
        cluster.kubectl.apply(pod(name, engine_port, scrape), options=[f"--namespace={namespace}"])
        run_at(cluster, namespace, name, address)
    here = f'namespace="{namespace}"'
    eventually(
        lambda: bool(query(url, f"count_over_time(num_requests_running{{{here}}}[1m]) >= 3")),
        "three samples",
    )
    (metric,) = query(url, f"num_requests_running{{{here}}}")
    assert metric["metric"] == {
        "__name__": "num_requests_running",
        "instance": f"{ADDRESS}:{engine_port}",
        "job": "pods",
        "model_name": "chat",
        "namespace": namespace,
        "node": "elsewhere",
        "pod": "engine",
    }
    assert [each["metric"] for each in query(url, f"up{{{here}}}")] == [
        {"__name__": "up", **{k: v for k, v in metric["metric"].items() if k not in ("__name__", "model_name")}}
    ]
    (samples,) = query(
        url, f"timestamp(num_requests_running{{{here}}}) - timestamp(num_requests_running{{{here}}} offset 1s)"
    )
    assert 0.9 <= float(samples["value"][1]) <= 1.1
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--force", "--grace-period=0")


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
    [
        ("list", "pods", True),
        ("watch", "pods", True),
        ("get", "secrets", False),
        ("list", "nodes", False),
        ("create", "pods", False),
        ("list", "servingfleets.kvplan.dev", False),
    ],
)
@pytest.mark.usefixtures("url")
def test_its_account_may_find_pods_and_nothing_else(cluster: Cluster, verb: str, resource: str, allowed: bool) -> None:
    assert may(cluster.kubectl, verb, resource) is allowed


def may(kubectl: Kubectl, verb: str, resource: str) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "resourceAttributes": attributes(verb, resource)},
    }
    answer = kubectl("create", "--output=json", "-f", "-", stdin=json.dumps(review))
    return bool(json.loads(answer)["status"]["allowed"])


def attributes(verb: str, resource: str) -> dict[str, str]:
    plural, _, group = resource.partition(".")
    return {"verb": verb, "resource": plural, "group": group}


@pytest.mark.parametrize(
    ("content", "able"),
    [
        (b"\x7fELF...github.com/prometheus/prometheus/discovery/kubernetes.(*Pod).Run...", True),
        (b"\x7fELF...github.com/prometheus/prometheus/discovery/file.(*Discovery).Run...", False),
    ],
    ids=["built with the discovery", "built without, as Debian does"],
)
def test_an_installed_prometheus_is_used_only_if_it_can_discover_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, able: bool
) -> None:
    installed = tmp_path / "prometheus"
    installed.write_bytes(content)
    installed.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prometheus_binary, "binary", lambda name: tmp_path / "built" / name)
    assert prometheus_binary.prometheus_binary() == (installed if able else tmp_path / "built" / "prometheus")
