"""Nodes that are cordoned, drained or gone, and PodDisruptionBudgets: ordinary inputs, on nodes of the test's own."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.harness.simulated_nodes import SimulatedNode
from e2e.operator.operator_process import FLEET, SAMPLE, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

POOL = "kvplan.dev/pool"


@pytest.fixture
def nodes(cluster: Cluster, namespace: str) -> Iterator[list[str]]:
    """Two nodes that no other fleet selects."""
    names = [f"{namespace[-6:]}-{number}" for number in (1, 2)]
    cluster.add_nodes(SimulatedNode(name, labels={POOL: namespace[-6:]}) for name in names)
    yield names
    cluster.kubectl("delete", "nodes", "--ignore-not-found", *names)


@pytest.fixture
def operator(cluster: Cluster, namespace: str, nodes: list[str]) -> Iterator[Operator]:
    """An operator whose fleet has a plan in force on both nodes."""
    started = Operator(cluster, namespace)
    documents = list(yaml.safe_load_all(SAMPLE.read_text()))
    fleet = next(item for item in documents if item["kind"] == "ServingFleet")
    fleet["spec"]["nodes"]["selector"] = {"matchLabels": {POOL: namespace[-6:]}}
    started.apply(*documents)
    started.wait_for_candidate()
    started.accept(started.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
    started.wait_for("Ready", "AsPlanned")
    assert {pod["spec"]["nodeName"] for pod in pods(started)} == set(nodes)
    yield started
    started.process.stop()


def pods(operator: Operator) -> list[dict[str, Any]]:
    """Engines."""
    found: list[dict[str, Any]] = operator.get("pods")["items"]
    return found


def uids(operator: Operator) -> set[str]:
    """Of the engines."""
    return {pod["metadata"]["uid"] for pod in pods(operator)}


def excluded(operator: Operator) -> dict[str, str]:
    """Why GPUs of a node are not counted, by node, as the fleet's status has it."""
    gpus = operator.get("fleet", FLEET)["status"]["gpus"]
    return {entry["node"]: entry["reason"] for entry in gpus.get("excluded", ())}


def test_on_a_cordoned_node_engines_go_on_serving(operator: Operator, nodes: list[str]) -> None:
    serving = uids(operator)
    operator.cluster.kubectl("cordon", nodes[0])
    until(lambda: nodes[0] in excluded(operator), "the node excluded", operator.process)
    assert uids(operator) == serving
    operator.cluster.kubectl("uncordon", nodes[0])
    until(lambda: not excluded(operator), "all nodes counted", operator.process)
    operator.wait_for("Ready", "AsPlanned")
    assert uids(operator) == serving


def test_after_a_drain_the_groups_come_back_with_their_node(operator: Operator, nodes: list[str]) -> None:
    before = len(pods(operator))
    operator.cluster.kubectl("drain", nodes[0], "--delete-emptydir-data", "--timeout=60s")
    until(lambda: nodes[0] in excluded(operator), "the node excluded", operator.process)
    assert {pod["spec"].get("nodeName") for pod in pods(operator)} <= {nodes[1], None}
    operator.cluster.kubectl("uncordon", nodes[0])

    def back() -> bool:
        placed = [pod["spec"].get("nodeName") for pod in pods(operator)]
        return len(placed) == before and set(placed) == set(nodes)

    until(back, "the groups on both nodes", operator.process, 120)
    operator.wait_for("Ready", "AsPlanned", seconds=90)


def test_a_disruption_budget_holds_a_drain_and_no_rollout(operator: Operator, nodes: list[str]) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "engines"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "vllm"}}},
    }
    operator.apply(budget)
    serving, used = uids(operator), sum(gpus(pod) for pod in pods(operator))
    operator.change({"nodes": {"maxGpus": used // 2}})
    held = current(operator)
    until(lambda: waiting(operator) not in ("", held), "a plan of half the GPUs", operator.process)
    operator.accept(waiting(operator))
    until(lambda: sum(gpus(pod) for pod in pods(operator)) <= used // 2, "half the GPUs free", operator.process, 180)
    operator.wait_for("Ready", "AsPlanned", seconds=120)
    assert uids(operator) != serving


def current(operator: Operator) -> str:
    """Digest of the plan in force."""
    return str(operator.get("fleet", FLEET)["status"]["currentPlan"]["digest"])


def waiting(operator: Operator) -> str:
    """Digest of the plan that waits; empty where none does."""
    return str(operator.get("fleet", FLEET)["status"].get("candidatePlan", {}).get("digest", ""))


def gpus(pod: dict[str, Any]) -> int:
    """That a pod asks for."""
    return int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


@pytest.mark.slow
def test_when_a_node_is_gone_a_plan_without_it_is_proposed_and_comes_in_force(
    operator: Operator, nodes: list[str]
) -> None:
    held = current(operator)
    operator.cluster.kubectl("delete", "node", nodes[0])

    until(lambda: waiting(operator) not in ("", held), "a plan without the node", operator.process)
    accepted = waiting(operator)
    operator.accept(accepted)
    until(lambda: current(operator) == accepted, "the plan without the node in force", operator.process, 240)
    operator.wait_for("Ready", "AsPlanned", seconds=240)
    left = [pod for pod in pods(operator) if pod["spec"]["nodeName"] != nodes[1]]
    assert all("deletionTimestamp" in pod["metadata"] for pod in left), "nobody is left to end them but the cluster"
