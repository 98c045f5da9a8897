"""Deployments that ask for GPUs behave on the simulated nodes as on a cluster."""

import json
from datetime import datetime
from typing import Any

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest
from e2e.tests.support import eventually

pytestmark = pytest.mark.e2e

GPUS = "nvidia.com/gpu"


def engines(name: str, replicas: int, gpus: int, **annotations: str) -> Manifest:
    """A Deployment of engines that are replaced in place: a full cluster has no room for one more."""
    container = {"name": "vllm", "image": "vllm:1", "resources": {"limits": {GPUS: str(gpus)}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {
                "metadata": {
                    "labels": {"app": name},
                    "annotations": {f"bed.kvplan.dev/{key}": value for key, value in annotations.items()},
                },
                "spec": {"containers": [container]},
            },
        },
    }


def rolled_out(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={namespace}", "--timeout=60s")


def pods(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = cluster.kubectl.get("pods", f"--namespace={namespace}")["items"]
    return items


def requested(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"][GPUS])


def test_the_sample_has_three_ready_nodes_of_eight_labelled_gpus(cluster: Cluster) -> None:
    nodes = cluster.kubectl.get("nodes", "--selector=nvidia.com/gpu.product=NVIDIA-H200")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
    assert [node["status"]["allocatable"][GPUS] for node in nodes] == ["8", "8", "8"]
    for node in nodes:
        ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
        assert ready["status"] == "True"


def test_nodes_renew_their_leases(cluster: Cluster) -> None:
    def renewed() -> datetime:
        lease = cluster.kubectl.get("lease", "gpu-node-1", "--namespace=kube-node-lease")
        assert lease["spec"]["leaseDurationSeconds"] == 40
        return datetime.fromisoformat(lease["spec"]["renewTime"])

    first = renewed()
    eventually(lambda: renewed() > first, "the lease is renewed")


def test_gpu_requests_fill_the_nodes_and_the_rest_waits(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl.apply(engines("chat", replicas=7, gpus=4), options=[f"--namespace={namespace}"])
    cluster.kubectl(
        "wait",
        "deployment/chat",
        f"--namespace={namespace}",
        "--for=jsonpath={.status.readyReplicas}=6",
        "--timeout=60s",
    )
    bound: dict[str, int] = {}
    for pod in pods(cluster, namespace):
        if "nodeName" in pod["spec"]:
            bound[pod["spec"]["nodeName"]] = bound.get(pod["spec"]["nodeName"], 0) + requested(pod)
    assert bound == {"gpu-node-1": 8, "gpu-node-2": 8, "gpu-node-3": 8}
    (waiting,) = (pod for pod in pods(cluster, namespace) if "nodeName" not in pod["spec"])
    assert waiting["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert f"3 Insufficient {GPUS}" in waiting["status"]["conditions"][0]["message"]


@pytest.mark.smoke
def test_a_rollout_without_surge_never_asks_for_more_than_there_is(cluster: Cluster, namespace: str) -> None:
    where = f"--namespace={namespace}"
    cluster.kubectl.apply(engines("chat", replicas=6, gpus=4, drain="500ms"), options=[where])
    rolled_out(cluster, namespace, "chat")
    before = {pod["metadata"]["name"] for pod in pods(cluster, namespace)}
    cluster.kubectl("set", "image", "deployment/chat", "vllm=vllm:2", where)
    most = 0

    def done() -> bool:
        nonlocal most
        seen = pods(cluster, namespace)
        most = max(most, sum(requested(pod) for pod in seen if "nodeName" in pod["spec"]))
        return {pod["spec"]["containers"][0]["image"] for pod in seen if is_ready(pod)} == {"vllm:2"} and len(seen) == 6

    eventually(done, "every engine runs the new image", seconds=90)
    assert most == 24
    assert not before & {pod["metadata"]["name"] for pod in pods(cluster, namespace)}


def is_ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


def test_an_evicted_pod_is_terminating_for_its_drain_and_then_replaced(cluster: Cluster, namespace: str) -> None:
    where = f"--namespace={namespace}"
    cluster.kubectl.apply(engines("chat", replicas=1, gpus=8, drain="2s"), options=[where])
    rolled_out(cluster, namespace, "chat")
    (name,) = (pod["metadata"]["name"] for pod in pods(cluster, namespace))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    (terminating,) = (pod for pod in pods(cluster, namespace) if pod["metadata"]["name"] == name)
    assert "deletionTimestamp" in terminating["metadata"]
    cluster.kubectl("wait", f"pod/{name}", where, "--for=delete", "--timeout=60s")
    rolled_out(cluster, namespace, "chat")
    assert len(pods(cluster, namespace)) == 1


def test_a_job_runs_to_its_end(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "job", "bench", "--image=bench:1", f"--namespace={namespace}")
    cluster.kubectl("wait", "job/bench", f"--namespace={namespace}", "--for=condition=Complete", "--timeout=60s")
