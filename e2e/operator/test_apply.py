"""From an applied fleet to a plan in force: the operator as a process, a real control plane, simulated nodes.

There are no routers, so every table counts as acknowledged, and no Prometheus: the classes state rates and lengths.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.harness.cluster import Cluster
from e2e.operator.operator_process import FLEET, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

REST_SECONDS = 90


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator for the test's namespace."""
    started = Operator(cluster, namespace)
    yield started
    started.process.stop()


def candidate(operator: Operator) -> dict[str, Any]:
    """The plan that waits, as the fleet's status names it."""
    operator.wait_for_candidate()
    found: dict[str, Any] = operator.get("fleet", FLEET)["status"]["candidatePlan"]
    return found


def condition(item: dict[str, Any], type_: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    return next((c["status"], c["reason"]) for c in item["status"]["conditions"] if c["type"] == type_)


def pods_by_node(operator: Operator) -> Counter[tuple[str, str]]:
    """Pods by configuration and node."""
    pods = operator.get("pods")["items"]
    return Counter((pod["metadata"]["labels"]["kvplan.dev/configuration"], pod["spec"]["nodeName"]) for pod in pods)


def planned_by_node(plan: dict[str, Any]) -> Counter[tuple[str, str]]:
    """Groups that a plan places by configuration and node."""
    return Counter(
        (group["configuration"], placement["stages"][0])
        for group in plan["spec"]["groups"]
        for placement in group["placements"]
    )


def test_a_fleet_is_planned_and_the_accepted_plan_comes_in_force(operator: Operator) -> None:
    operator.apply_sample()
    waiting = candidate(operator)
    plan = operator.get("rplan", waiting["name"])
    assert condition(operator.get("fleet", FLEET), "Ready") == ("True", "ProposedOnly")
    assert condition(plan, "Proposed") == ("True", "Feasible")
    assert plan["metadata"]["ownerReferences"][0]["name"] == FLEET
    assert operator.get("deployments")["items"] == []

    operator.accept(waiting["digest"])
    operator.wait_for("Ready", "AsPlanned")

    fleet = operator.get("fleet", FLEET)
    assert fleet["status"]["currentPlan"] == {"name": waiting["name"], "digest": waiting["digest"]}
    assert "candidatePlan" not in fleet["status"]
    assert pods_by_node(operator) == planned_by_node(plan)
    index = json.loads(operator.get("configmap", f"{FLEET}-table")["data"]["index.json"])
    assert (index["mode"], index["planDigest"]) == ("plan", waiting["digest"])
    assert {slot["state"] for slot in index["slots"]} == {"serving"}
    assert len(index["slots"]) == sum(planned_by_node(plan).values())
    assert condition(operator.get("rplan", waiting["name"]), "Applied") == ("True", "AsPlanned")
    for request_class in operator.get("rclass")["items"]:
        assert request_class["status"]["fleet"] == FLEET
        assert request_class["status"]["reservationTokens"] > 0


def test_at_rest_nothing_is_written_but_the_lease(operator: Operator) -> None:
    operator.apply_sample()
    operator.accept(candidate(operator)["digest"])
    operator.wait_for("Ready", "AsPlanned")
    operator.process.wait(5)  # events of the last transitions are written beside the looks
    start = operator.audit_position()
    ended = operator.process.wait(REST_SECONDS)
    assert not ended
    assert list(operator.writes_since(start)) == []


def test_a_deleted_fleet_leaves_its_engines_serving_and_nothing_else(operator: Operator) -> None:
    operator.apply_sample()
    operator.accept(candidate(operator)["digest"])
    operator.wait_for("Ready", "AsPlanned")
    serving = {pod["metadata"]["uid"] for pod in operator.get("pods")["items"]}
    for what in (f"fleet/{FLEET}", "--all rclass"):
        operator.delete(*what.split())
    operator.wait_gone("rplan", f"configmap/{FLEET}-table")
    assert {pod["metadata"]["uid"] for pod in operator.get("pods")["items"]} == serving
    assert operator.process.running
    assert FLEET not in operator.metrics()


def test_the_policy_auto_puts_the_first_plan_in_force_by_itself(operator: Operator) -> None:
    operator.apply_sample()
    candidate(operator)
    operator.change({"planPolicy": {"mode": "Auto"}})
    operator.wait_for("Ready", "AsPlanned")
    assert condition(operator.get("fleet", FLEET), "PlanAccepted") == ("True", "PolicyAccepted")
    assert len(operator.get("pods")["items"]) > 0


def test_an_operator_killed_in_the_middle_of_a_rollout_goes_on_after_a_restart(operator: Operator) -> None:
    operator.apply_sample(load="8s")
    waiting = candidate(operator)
    operator.accept(waiting["digest"])
    operator.wait_for_deployment()
    operator.process.kill()
    before = {item["metadata"]["uid"] for item in operator.get("deployments")["items"]}

    operator.process.start()
    operator.wait_for("Ready", "AsPlanned", seconds=90)
    plan = operator.get("rplan", waiting["name"])
    assert pods_by_node(operator) == planned_by_node(plan)
    assert before <= {item["metadata"]["uid"] for item in operator.get("deployments")["items"]}
    assert operator.get("fleet", FLEET)["status"]["currentPlan"]["digest"] == waiting["digest"]
