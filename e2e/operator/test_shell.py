"""The operator as a process: how it is started, who leads, and what it says when it cannot work."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.process import Command
from e2e.operator.operator_process import FLEET, Operator

ROLES = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"
FORBIDDEN = 403

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]


@contextmanager
def running(operator: Operator) -> Iterator[Operator]:
    """An operator that ends with the block."""
    try:
        yield operator
    finally:
        operator.process.stop()


def test_kopf_runs_the_operator_too(cluster: Cluster, namespace: str) -> None:
    by_kopf = ("-m", "kopf", "run", "-m", "kvplan_operator.main", f"--namespace={namespace}")
    with running(Operator(cluster, namespace, *by_kopf)) as operator:
        operator.apply_sample()
        operator.wait_for_candidate()


def test_a_standby_takes_over_from_a_stopped_leader_which_ends_when_it_wakes(cluster: Cluster, namespace: str) -> None:
    with running(Operator(cluster, namespace, name="first")) as first:
        first.wait_for_leader_other_than("")
        holder = first.leader()
        first.apply_sample()
        first.wait_for_candidate()
        with running(Operator(cluster, namespace, name="second")) as second:
            first.process.send(SIGSTOP)
            second.wait_for_leader_other_than(holder)
            suspend = '{"spec": {"suspend": true}}'
            cluster.kubectl("patch", "fleet", FLEET, f"--namespace={namespace}", "--type=merge", "--patch", suspend)
            second.wait_for("Ready", "Suspended")
            first.process.send(SIGCONT)
            assert first.process.wait(30)
            assert second.process.running


def test_missing_permissions_are_named_one_by_one_and_end_the_process_when_patience_ends(
    cluster: Cluster, namespace: str
) -> None:
    environment = {
        "KVPLAN_KUBECONFIG": str(cluster.plane.identity("nobody")),
        "KVPLAN_NAMESPACES": namespace,
        "KVPLAN_LISTEN": f"127.0.0.1:{cluster.ports.take()}",
        "KVPLAN_START_PATIENCE_SECONDS": "0",
    }
    process = cluster.run(Command("nobody", [sys.executable, "-m", "kvplan_operator.main"], environment))
    assert process.wait(30)
    said = process.log.read_text()
    assert "permission to list servingfleets.kvplan.dev in namespace" in said
    assert "permission to patch servingfleets.kvplan.dev/status" in said
    assert "permission to watch pods in the whole cluster" in said


def test_under_the_shipped_roles_a_plan_comes_in_force_and_nothing_is_refused(cluster: Cluster, namespace: str) -> None:
    user = f"operator-{namespace[-6:]}"
    roles = [item for item in yaml.safe_load_all(ROLES.read_text()) if not item["kind"].endswith("Binding")]
    cluster.kubectl.apply(*roles, options=[f"--namespace={namespace}"])
    everywhere, inside = f"--user={user}", (f"--user={user}", f"--namespace={namespace}")
    cluster.kubectl("create", "clusterrolebinding", user, "--clusterrole=kvplan-operator-view", everywhere)
    cluster.kubectl("create", "rolebinding", "fleets", "--clusterrole=kvplan-operator-fleets", *inside)
    cluster.kubectl("create", "rolebinding", "lease", "--role=kvplan-operator-lease", *inside)
    start = cluster.plane.audit_log.stat().st_size
    with running(Operator(cluster, namespace, kubeconfig=str(cluster.plane.identity(user)))) as operator:
        operator.apply_sample()
        operator.wait_for_candidate()
        operator.accept(operator.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
        operator.wait_for("Ready", "AsPlanned")
        writes = list(operator.writes_since(start))
    assert {write for write in writes if write.code == FORBIDDEN} == set()
    assert "deployments" in {write.resource for write in writes}
