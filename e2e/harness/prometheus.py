"""A real Prometheus that finds engines and routers as pods of the API server and scrapes them every second.

Inputs: a cluster's API server and a token of a service account that may read pods and nothing else. Outputs: the URL
of the query API. Services are of no use here (nothing proxies them and the API server refuses loopback endpoints), so
discovery is by pods. Only loopback addresses are scraped: those of simulated pods lead nowhere.
"""

import json
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.commands import HOST
from e2e.harness.kubectl import Kubectl
from e2e.harness.paths import E2E
from e2e.harness.process import Command
from e2e.harness.prometheus_binary import prometheus_binary

NAMESPACE = "bed-monitoring"
SERVICE_ACCOUNT = "prometheus"
RBAC = E2E / "nodes" / "prometheus-rbac.yaml"
SCRAPE_SECONDS = 1
_ANNOTATION = "__meta_kubernetes_pod_annotation_prometheus_io_"


def command(directory: Path, port: int) -> Command:
    """Return the server's command for a directory that `configure` has filled."""
    argv = [
        str(prometheus_binary()),
        f"--config.file={directory / 'prometheus.yaml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        "--storage.tsdb.retention.time=1d",
        f"--web.listen-address={HOST}:{port}",
        "--web.enable-lifecycle",
    ]
    return Command("prometheus", argv, remove=[directory / "data"])


def configure(directory: Path, server: str, authority: Path, kubectl: Kubectl) -> None:
    """Create the service account with its RBAC and write token and configuration.

    Args:
        directory: where to; created.
        server: URL of the API server.
        authority: certificate that signed its certificate.
        kubectl: of a user who may create the RBAC.
    """
    directory.mkdir(mode=0o700)
    kubectl("apply", "-f", str(RBAC))
    token = directory / "token"
    token.touch(mode=0o600)
    token.write_text(kubectl("create", "token", SERVICE_ACCOUNT, f"--namespace={NAMESPACE}", "--duration=24h").strip())
    content = configuration(server, authority, token)
    (directory / "prometheus.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def configuration(server: str, authority: Path, token: Path) -> dict[str, Any]:
    """Return Prometheus's configuration: every pod annotated `prometheus.io/scrape: "true"` on a loopback address."""
    discovery = {
        "role": "pod",
        "api_server": server,
        "authorization": {"credentials_file": str(token)},
        "tls_config": {"ca_file": str(authority)},
    }
    every = f"{SCRAPE_SECONDS}s"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "scrape_configs": [
            {"job_name": "pods", "kubernetes_sd_configs": [discovery], "relabel_configs": _relabelling()},
        ],
    }


def _relabelling() -> list[dict[str, Any]]:
    return [
        {"action": "keep", "source_labels": [f"{_ANNOTATION}scrape"], "regex": "true"},
        {"action": "keep", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running"},
        {"action": "keep", "source_labels": ["__meta_kubernetes_pod_ip"], "regex": r"127\..+"},
        {
            "source_labels": ["__meta_kubernetes_pod_ip", f"{_ANNOTATION}port"],
            "regex": r"(.+);(\d+)",
            "replacement": "$1:$2",
            "target_label": "__address__",
        },
        {"source_labels": [f"{_ANNOTATION}path"], "regex": "(.+)", "target_label": "__metrics_path__"},
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
        {"source_labels": ["__meta_kubernetes_pod_node_name"], "target_label": "node"},
    ]


def query(url: str, expression: str) -> list[dict[str, Any]]:
    """Return the series that an expression has now."""
    asked = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(asked, timeout=10) as response:  # noqa: S310 - loopback
        result: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return result
