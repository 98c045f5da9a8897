"""Deployments, rollouts, scaling, evictions and drains behave alike on simulated and on process nodes."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.errors import KubectlFailed
from e2e.harness.kubectl import Manifest
from e2e.harness.process import Process
from e2e.harness.simulated_nodes import NODE_KIND_LABEL, SimulatedNode
from e2e.nodes import scenario
from e2e.tests.pods import apply, gone
from e2e.tests.support import eventually

pytestmark = pytest.mark.e2e

GPUS = "nvidia.com/gpu"
NODES = {"simulated": ["simulated-1", "simulated-2"], "process": ["process-1", "process-2"]}
LOST_WITHIN_SECONDS = 120
both_kinds = pytest.mark.parametrize("kind", sorted(NODES))


@pytest.fixture(scope="module")
def agents() -> dict[str, Process]:
    """The agents of the process nodes by the node's name."""
    return {}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, agents: dict[str, Process]) -> Iterator[Cluster]:
    """A cluster with two nodes of four GPUs of each kind."""
    with Cluster([SimulatedNode(name, gpus=4) for name in NODES["simulated"]]) as bed:
        for name in NODES["process"]:
            agents[name] = process_nodes.start(bed, ProcessNode(SimulatedNode(name, gpus=4)))
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


def engines(kind: str, replicas: int, gpus: int = 2, **spec: Any) -> Manifest:
    """A Deployment for one kind of nodes whose replicas are replaced in place."""
    resources = {"limits": {GPUS: str(gpus)}}
    container = {"name": "main", "image": "engine:1", "command": ["sleep", "3600"], "resources": resources}
    pod = {"nodeSelector": {NODE_KIND_LABEL: kind}, "terminationGracePeriodSeconds": 5, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engines"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "engines"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"app": "engines"}}, "spec": pod | spec},
        },
    }


def rolled_out(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("rollout", "status", "deployment/engines", f"--namespace={namespace}", "--timeout=60s")


def pods(cluster: Cluster, namespace: str) -> dict[str, Manifest]:
    """The pods that are not being deleted, by name."""
    items = cluster.kubectl.get("pods", f"--namespace={namespace}")["items"]
    return {each["metadata"]["name"]: each for each in items if "deletionTimestamp" not in each["metadata"]}


def bound_gpus(cluster: Cluster, namespace: str) -> int:
    """GPUs of all bound pods, Terminating ones too, unless they have said that their containers have ended."""
    items = cluster.kubectl.get("pods", f"--namespace={namespace}")["items"]
    ended = ("Succeeded", "Failed")
    bound = [each for each in items if "nodeName" in each["spec"] and each["status"]["phase"] not in ended]
    return sum(int(each["spec"]["containers"][0]["resources"]["limits"][GPUS]) for each in bound)


@both_kinds
def test_gpu_requests_fill_the_nodes_of_their_kind(cluster: Cluster, namespace: str, kind: str) -> None:
    apply(cluster, namespace, engines(kind, replicas=5))
    full = ("--for=jsonpath={.status.readyReplicas}=4", "--timeout=60s", f"--namespace={namespace}")
    cluster.kubectl("wait", "deployment/engines", *full)
    nodes = sorted(str(each["spec"].get("nodeName")) for each in pods(cluster, namespace).values())
    assert nodes == sorted(["None", *NODES[kind], *NODES[kind]])


@both_kinds
def test_a_rollout_without_surge_replaces_one_after_the_other(cluster: Cluster, namespace: str, kind: str) -> None:
    apply(cluster, namespace, engines(kind, replicas=4))
    rolled_out(cluster, namespace)
    before = set(pods(cluster, namespace))
    cluster.kubectl("set", "image", "deployment/engines", "main=engine:2", f"--namespace={namespace}")
    most = 0

    def done() -> bool:
        nonlocal most
        most = max(most, bound_gpus(cluster, namespace))
        found = cluster.kubectl.get("deployment", "engines", f"--namespace={namespace}")
        counts = found["status"]
        return bool(
            counts["observedGeneration"] == found["metadata"]["generation"]
            and counts.get("updatedReplicas") == counts.get("readyReplicas") == counts["replicas"] == 4
        )

    eventually(done, "every replica is new", seconds=90)
    assert most <= 8, "two nodes of four GPUs"
    assert not before & set(pods(cluster, namespace))


@both_kinds
def test_scaling_down_takes_the_pod_with_the_lowest_deletion_cost(cluster: Cluster, namespace: str, kind: str) -> None:
    here = f"--namespace={namespace}"
    apply(cluster, namespace, engines(kind, replicas=3))
    rolled_out(cluster, namespace)
    *kept, chosen = sorted(pods(cluster, namespace))
    cluster.kubectl("annotate", "pod", chosen, "controller.kubernetes.io/pod-deletion-cost=-100", here)
    cluster.kubectl("scale", "deployment/engines", "--replicas=2", here)
    gone(cluster, namespace, chosen)
    assert sorted(pods(cluster, namespace)) == kept


@both_kinds
def test_a_disruption_budget_stops_evictions_but_the_first(cluster: Cluster, namespace: str, kind: str) -> None:
    apply(cluster, namespace, engines(kind, replicas=4), budget())
    rolled_out(cluster, namespace)
    budget_allows_one(cluster, namespace)
    first, second, *_ = sorted(pods(cluster, namespace))
    cluster.kubectl("cordon", *NODES[kind])
    try:
        evict(cluster, namespace, first)
        with pytest.raises(KubectlFailed, match="would violate the pod's disruption budget"):
            evict(cluster, namespace, second)
        gone(cluster, namespace, first)
    finally:
        cluster.kubectl("uncordon", *NODES[kind])
    rolled_out(cluster, namespace)
    assert second in pods(cluster, namespace)


def budget() -> Manifest:
    spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": "engines"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "floor"}, "spec": spec}


def budget_allows_one(cluster: Cluster, namespace: str) -> None:
    one = ("--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=30s", f"--namespace={namespace}")
    cluster.kubectl("wait", "poddisruptionbudget/floor", *one)


def evict(cluster: Cluster, namespace: str, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))


@both_kinds
def test_a_drain_moves_every_pod_and_keeps_the_budget(cluster: Cluster, namespace: str, kind: str) -> None:
    leaving, staying = NODES[kind]
    apply(cluster, namespace, engines(kind, replicas=4, gpus=1), budget())
    rolled_out(cluster, namespace)
    budget_allows_one(cluster, namespace)
    try:
        cluster.kubectl("drain", leaving, "--timeout=90s", seconds=100)
        rolled_out(cluster, namespace)
        assert {each["spec"]["nodeName"] for each in pods(cluster, namespace).values()} == {staying}
    finally:
        cluster.kubectl("uncordon", leaving)


@pytest.mark.slow
def test_pods_of_lost_nodes_are_replaced_elsewhere(
    cluster: Cluster, namespace: str, agents: dict[str, Process]
) -> None:
    """Both kinds at once: a node is lost 50 s after its last sign of life."""
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    leaving = [unreachable | {"tolerationSeconds": 0}]
    manifests = []
    for kind in sorted(NODES):
        manifest = engines(kind, replicas=2, gpus=1, tolerations=leaving)
        manifest["metadata"]["name"] = kind
        manifest["spec"]["selector"]["matchLabels"] = {"app": kind}
        manifest["spec"]["template"]["metadata"]["labels"] = {"app": kind}
        manifests.append(manifest)
    apply(cluster, namespace, *manifests)
    for kind in sorted(NODES):
        cluster.kubectl("rollout", "status", f"deployment/{kind}", f"--namespace={namespace}", "--timeout=60s")
    loss = scenario.load("node-loss")
    agents["process-1"].send(signal.SIGSTOP)
    loss.begin(cluster.kubectl, "simulated-1")
    try:
        eventually(lambda: on_remaining_nodes(cluster, namespace), "all run elsewhere", LOST_WITHIN_SECONDS)
        terminating = terminating_pods(cluster, namespace)
        assert {each["spec"]["nodeName"] for each in terminating} <= {"process-1", "simulated-1"}
        assert terminating, "nobody there says that they have stopped"
        assert not any(is_ready(each) for each in terminating), "the control plane takes them for not Ready"
    finally:
        agents["process-1"].send(signal.SIGCONT)
        loss.end(cluster.kubectl, "simulated-1")
    eventually(lambda: not terminating_pods(cluster, namespace), "the nodes are back and their pods go")


def on_remaining_nodes(cluster: Cluster, namespace: str) -> bool:
    found = [each for each in pods(cluster, namespace).values() if is_ready(each)]
    nodes = [each["spec"]["nodeName"] for each in found]
    return sorted(nodes) == ["process-2", "process-2", "simulated-2", "simulated-2"]


def is_ready(pod: Manifest) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


def terminating_pods(cluster: Cluster, namespace: str) -> list[Manifest]:
    items = cluster.kubectl.get("pods", f"--namespace={namespace}")["items"]
    return [each for each in items if "deletionTimestamp" in each["metadata"]]
