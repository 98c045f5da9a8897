"""Deletion in every order, with the operator at work and without it: nothing hangs, and engines stay.

The operator leaves no finalizer on anything, so that a cluster without it lets everything go.
"""

from collections.abc import Iterator

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.operator_process import FLEET, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

INDEX = f"{FLEET}-table"
KINDS = ("fleet", "rclass", "rplan", "configmap", "deployment", "podtemplate", "events.events.k8s.io")


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator whose fleet has a plan in force."""
    # Its Lease is elsewhere, as where it looks after several namespaces.
    started = Operator(cluster, namespace, LEASE_NAMESPACE="default", LEASE_NAME=namespace)
    started.apply_sample()
    started.wait_for_candidate()
    started.accept(started.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
    started.wait_for("Ready", "AsPlanned")
    yield started
    started.process.stop()


def engines(operator: Operator) -> set[str]:
    """Pods by uid."""
    return {pod["metadata"]["uid"] for pod in operator.get("pods")["items"]}


def plan_in_force(operator: Operator) -> str:
    """Its name."""
    return str(operator.get("fleet", FLEET)["status"]["currentPlan"]["name"])


def epoch(operator: Operator) -> str:
    """When the index object was created."""
    return str(operator.get("configmap", INDEX)["metadata"]["creationTimestamp"])


def test_no_object_carries_a_finalizer(operator: Operator) -> None:
    items = [item for kind in KINDS for item in operator.get(kind)["items"]]
    assert {item["kind"] for item in items} >= {"ServingFleet", "RequestClass", "RoutingPlan", "Deployment"}
    assert [item["metadata"]["name"] for item in items if item["metadata"].get("finalizers")] == []


def test_a_deleted_plan_and_a_deleted_index_come_back_and_no_engine_restarts(operator: Operator) -> None:
    name, before, serving = plan_in_force(operator), epoch(operator), engines(operator)
    uid = operator.get("rplan", name)["metadata"]["uid"]
    operator.delete(f"rplan/{name}", f"configmap/{INDEX}")

    def back() -> bool:
        plans = {plan["metadata"]["name"]: plan["metadata"]["uid"] for plan in operator.get("rplan")["items"]}
        tables = [item for item in operator.get("configmap")["items"] if item["metadata"]["name"] == INDEX]
        return plans.get(name, uid) != uid and bool(tables)

    until(back, "plan and index again", operator.process)
    operator.wait_for("Ready", "AsPlanned")
    assert plan_in_force(operator) == name
    assert epoch(operator) > before
    assert engines(operator) == serving


def test_a_plan_in_force_that_went_while_no_operator_ran_is_told_and_engines_stay(operator: Operator) -> None:
    name, serving = plan_in_force(operator), engines(operator)
    operator.process.kill()
    operator.delete(f"rplan/{name}", f"configmap/{INDEX}")
    operator.process.start()
    # Nothing but the groups that run tells what it was. A solve for the same partition may share traffic otherwise.
    until(lambda: bool(operator.get("rplan")["items"]), "a plan of the same partition", operator.process, 120)
    (found,) = operator.get("rplan")["items"]
    if found["metadata"]["name"] != name:
        operator.wait_for("PlanAccepted", "UnknownDigest")
        message = next(c for c in operator.get("fleet", FLEET)["status"]["conditions"] if c["type"] == "PlanAccepted")
        assert f"there are {found['metadata']['name']}" in message["message"]
    else:
        operator.wait_for("Ready", "AsPlanned")
    assert engines(operator) == serving


def test_a_class_that_goes_and_comes_back_does_not_stop_the_fleet(operator: Operator) -> None:
    serving = engines(operator)
    operator.delete("rclass/code")
    operator.wait_for("PlanAccepted", "StalePlan")
    assert engines(operator) == serving
    operator.apply_sample()
    operator.change({"planPolicy": {"mode": "Approve"}})
    operator.wait_for("PlanAccepted", "DigestAccepted")
    operator.wait_for("Ready", "AsPlanned")
    assert engines(operator) == serving


@pytest.mark.parametrize(
    "order", ["fleet rclass", "rclass fleet", "rplan fleet rclass", "configmap rclass rplan fleet"]
)
def test_without_an_operator_everything_goes_in_this_order_and_engines_stay(operator: Operator, order: str) -> None:
    serving = engines(operator)
    operator.process.kill()
    for kind in order.split():
        operator.delete(kind, "--all", "--timeout=30s")
    until(lambda: not operator.get("rplan")["items"], "no plan", operator.cluster.plane.api_server)
    assert engines(operator) == serving


@pytest.mark.parametrize("at_work", [True, False], ids=["with the operator", "without it"])
def test_the_namespace_can_be_deleted(operator: Operator, at_work: bool) -> None:
    if not at_work:
        operator.process.kill()
    operator.cluster.kubectl("delete", "namespace", operator.namespace, "--timeout=60s")
    assert operator.process.running == at_work
    # The fixture deletes it once more.
    operator.cluster.kubectl("create", "namespace", operator.namespace)
