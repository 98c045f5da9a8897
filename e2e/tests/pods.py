"""Pods of the tests on process nodes, and what the tests ask about them."""

import http.client
from pathlib import Path
from typing import Any

from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest
from e2e.harness.simulated_nodes import NODE_KIND_LABEL
from e2e.tests.support import eventually

PORT = 18080
SERVER = Path(__file__).with_name("pod_server.py")
PROGRAM = {"name": "program", "configMap": {"name": "program"}}
PROGRAM_MOUNT = {"name": "program", "mountPath": "/app"}


def on_process_nodes(**spec: Any) -> Manifest:
    """A pod's spec that only process nodes satisfy and that stops quickly."""
    return {"nodeSelector": {NODE_KIND_LABEL: "process"}, "terminationGracePeriodSeconds": 5, **spec}


def pod(name: str, *containers: Manifest, **spec: Any) -> Manifest:
    """A pod for a process node."""
    content = on_process_nodes(containers=list(containers), **spec)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": content}


def shell(script: str, name: str = "main", **more: Any) -> Manifest:
    """A container that runs a shell script."""
    return {"name": name, "image": "any", "command": ["sh", "-c", script], **more}


def server(**more: Any) -> Manifest:
    """A container that runs the pod server; the pod needs the volume `PROGRAM`."""
    mounts = [PROGRAM_MOUNT, *more.pop("volumeMounts", [])]
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {
        "name": "server",
        "image": "any",
        "command": ["python", "/app/pod_server.py", "$(POD_IP)", str(PORT), "/app"],
        "ports": [{"name": "http", "containerPort": PORT}],
        "volumeMounts": mounts,
        **more,
        "env": [address, *more.get("env", [])],
    }


def apply(cluster: Cluster, namespace: str, *manifests: Manifest) -> None:
    """Apply manifests in a namespace."""
    cluster.kubectl.apply(*manifests, options=[f"--namespace={namespace}"])


def with_program(cluster: Cluster, namespace: str) -> None:
    """Put the pod server's program where pods can mount it."""
    program = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "program"}}
    apply(cluster, namespace, program | {"data": {SERVER.name: SERVER.read_text()}})


def status(cluster: Cluster, namespace: str, name: str) -> Manifest:
    """The pod's status."""
    found: Manifest = cluster.kubectl.get("pod", name, f"--namespace={namespace}")["status"]
    return found


def container_status(cluster: Cluster, namespace: str, name: str) -> Manifest:
    """The status of the pod's first container; empty where there is none yet."""
    statuses: list[Manifest] = status(cluster, namespace, name).get("containerStatuses", [{}])
    return statuses[0]


def ready(cluster: Cluster, namespace: str, *names: str) -> None:
    """Return when the pods are Ready."""
    pods = [f"pod/{name}" for name in names]
    cluster.kubectl("wait", *pods, f"--namespace={namespace}", "--for=condition=Ready", "--timeout=60s")


def ended(cluster: Cluster, namespace: str, name: str, phase: str) -> None:
    """Return when the pod is in a final phase."""
    cluster.kubectl(
        "wait", f"pod/{name}", f"--namespace={namespace}", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=60s"
    )


def gone(cluster: Cluster, namespace: str, name: str) -> None:
    """Return when there is no such pod."""
    cluster.kubectl("wait", f"pod/{name}", f"--namespace={namespace}", "--for=delete", "--timeout=60s")


def ask(cluster: Cluster, namespace: str, name: str, path: str) -> tuple[int, str]:
    """What the pod's server answers: HTTP status and body."""
    connection = http.client.HTTPConnection(status(cluster, namespace, name)["podIP"], PORT, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def log(cluster: Cluster, namespace: str, name: str, container: str = "main") -> str:
    """What the container has printed on whichever node it ran."""
    files = cluster.logs.glob(f"*/{namespace}_{name}_{container}.log")
    return "".join(file.read_text() for file in sorted(files))


def says(cluster: Cluster, namespace: str, name: str, word: str, container: str = "main") -> None:
    """Return when the container has printed the word."""
    eventually(lambda: word in log(cluster, namespace, name, container), f"{name} prints {word!r}")
