"""kvplan installed on a cluster of the bed, its operator in a pod of a process node, as a person installs it.

Inputs: a cluster with a process node. Outputs: objects to apply, waits. What differs from the manifests: which nodes
the operator's pods choose, and how many there are.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from e2e.agent.process_nodes import PROCESS
from e2e.harness.cluster import Cluster
from e2e.harness.errors import NotReady
from e2e.harness.simulated_nodes import NODE_KIND_LABEL
from e2e.install.rendering import Object, documents, kustomize, manifests

FLEETS = "serving"
"""Namespace that the namespaced installation looks after."""
FLEET = "assistants"
OPERATOR, ROUTER = "kvplan-operator", "kvplan-router"
"""Names of the Deployments and of their service accounts."""
SAMPLE = Path(__file__).with_name("samples") / "fleet.yaml"
_PLANNED_SECONDS = 120.0
_LOOK_SECONDS = 0.5
_ON_PROCESS_NODES = {NODE_KIND_LABEL: PROCESS}
_PATCH = [
    {"op": "add", "path": "/spec/template/spec/nodeSelector", "value": _ON_PROCESS_NODES},
    {"op": "replace", "path": "/spec/replicas", "value": 1},
]


def operator_by_kustomize(directory: Path, overlay: str = "namespaced") -> list[Object]:
    """An overlay with one operator on a process node."""
    manifests(directory)
    return _patched(directory / "operator", OPERATOR, {"resources": [f"../manifests/overlays/{overlay}"]})


def router_by_kustomize(directory: Path) -> list[Object]:
    """The sample fleet's router on a process node, without Envoy: pods of one machine share 127.0.0.1."""
    manifests(directory)
    asked = {"resources": ["../manifests/router"], "components": ["../manifests/components/gateway"]}
    return _patched(directory / "router", ROUTER, {"namespace": FLEETS, **asked})


def _patched(folder: Path, deployment: str, asked: Object) -> list[Object]:
    patch = {"target": {"kind": "Deployment", "name": deployment}, "patch": json.dumps(_PATCH)}
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({**asked, "patches": [patch]}))
    return kustomize(folder)


def operator_values() -> Object:
    """The chart's values for one operator on a process node."""
    return {"namespaces": [FLEETS], "replicas": 1, "nodeSelector": _ON_PROCESS_NODES}


def apply(cluster: Cluster, objects: Iterable[Object], namespace: str | None = None) -> str:
    """Apply server-side, namespaces first."""
    place = [f"--namespace={namespace}"] if namespace else []
    ordered = sorted(objects, key=lambda item: item["kind"] != "Namespace")
    return cluster.kubectl.apply(*ordered, options=["--server-side", *place])


def delete(cluster: Cluster, objects: Iterable[Object]) -> None:
    """Delete what was applied, and wait until it is gone."""
    text = yaml.safe_dump_all(list(objects))
    cluster.kubectl("delete", "--ignore-not-found", "--timeout=60s", "-f", "-", stdin=text)


def wait_for_rollout(cluster: Cluster, deployment: str, namespace: str) -> None:
    """Return when every pod of a Deployment is of its newest template and ready."""
    place = f"--namespace={namespace}"
    cluster.kubectl("rollout", "status", f"deployment/{deployment}", place, "--timeout=180s", seconds=200)


def stop(cluster: Cluster, deployment: str, namespace: str) -> None:
    """End a Deployment's pods, so that their watches end and the audit log has them."""
    here = f"--namespace={namespace}"
    cluster.kubectl("scale", f"deployment/{deployment}", "--replicas=0", here)
    cluster.kubectl(
        "wait", "pod", f"--selector=app.kubernetes.io/name={deployment}", "--for=delete", "--timeout=90s", here
    )


def apply_sample(cluster: Cluster) -> None:
    """Apply the sample fleet in the namespace that is looked after."""
    apply(cluster, documents(SAMPLE.read_text()), FLEETS)


def candidate(cluster: Cluster, *, other_than: str = "") -> str:
    """Digest of the plan that waits, once one other than a known one does."""
    deadline = time.monotonic() + _PLANNED_SECONDS
    while True:
        digest: str = _status(cluster).get("candidatePlan", {}).get("digest", "")
        if digest not in ("", other_than):
            return digest
        if time.monotonic() > deadline:
            raise NotReady(f"no plan is proposed within {_PLANNED_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)


def edit(cluster: Cluster, **spec: Any) -> None:
    """Change fields of the fleet's spec."""
    patch = json.dumps({"spec": spec})
    cluster.kubectl("patch", f"fleet/{FLEET}", f"--namespace={FLEETS}", "--type=merge", f"--patch={patch}")


def wait_for_reason(cluster: Cluster, reason: str, seconds: int = 90) -> None:
    """Return when the fleet's condition Ready has a reason."""
    _wait(cluster, f'--for=jsonpath={{.status.conditions[?(@.type=="Ready")].reason}}={reason}', seconds)


def accept(cluster: Cluster, digest: str) -> None:
    """Accept a plan and wait until it is in force."""
    edit(cluster, acceptedPlan={"digest": digest})
    wait_for_reason(cluster, "RollingOut")
    wait_for_reason(cluster, "AsPlanned", 300)


def _wait(cluster: Cluster, condition: str, seconds: int = 60) -> None:
    options = [f"--namespace={FLEETS}", f"--timeout={seconds}s"]
    cluster.kubectl("wait", f"fleet/{FLEET}", condition, *options, seconds=seconds + 20)


def _status(cluster: Cluster) -> Object:
    found: Object = cluster.kubectl.get("fleet", FLEET, f"--namespace={FLEETS}").get("status", {})
    return found
