"""The API server restarts, forgets what was watched, or falls silent: the operator goes on without a restart.

Its Lease is long here: what is tested is not who leads. While the API server is away, nobody can renew anything.
"""

import json
from collections.abc import Iterator
from signal import SIGCONT, SIGSTOP
from urllib.parse import urlsplit

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.half_open import HalfOpenProxy
from e2e.operator.operator_process import FLEET, LONG_LEASE, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator whose fleet has a plan in force."""
    started = Operator(cluster, namespace, **LONG_LEASE)
    put_in_force(started)
    yield started
    started.process.stop()


def put_in_force(operator: Operator) -> None:
    """Apply the sample and accept its plan."""
    operator.apply_sample()
    operator.wait_for_candidate()
    operator.accept(operator.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
    operator.wait_for("Ready", "AsPlanned")


def uids(operator: Operator) -> set[str]:
    """Of the engines."""
    return {pod["metadata"]["uid"] for pod in operator.get("pods")["items"]}


def restart_api_server(cluster: Cluster) -> None:
    """As a crash and its restart."""
    cluster.plane.api_server.kill()
    cluster.plane.api_server.start()
    cluster.plane.wait_for_api_server()


def test_after_a_restart_of_the_api_server_edits_are_seen_and_engines_stay(operator: Operator) -> None:
    serving = uids(operator)
    restart_api_server(operator.cluster)
    operator.change({"suspend": True})
    operator.wait_for("Ready", "Suspended")
    operator.change({"suspend": False})
    operator.wait_for("Ready", "AsPlanned")
    assert uids(operator) == serving
    assert operator.process.running


def test_what_happened_while_its_versions_expired_is_listed_anew(operator: Operator) -> None:
    operator.process.send(SIGSTOP)
    lost = min(pod["metadata"]["name"] for pod in operator.get("pods")["items"])
    operator.delete(f"pod/{lost}")
    operator.change({"rollout": {"deadlineSeconds": 7_000}})
    restart_api_server(operator.cluster)
    operator.process.send(SIGCONT)

    def seen() -> bool:
        fleet = operator.get("fleet", FLEET)
        slots = json.loads(operator.get("configmap", f"{FLEET}-table")["data"]["index.json"])["slots"]
        known = {slot["podName"] for slot in slots if slot["state"] == "serving"}
        there = {pod["metadata"]["name"] for pod in operator.get("pods")["items"]}
        return fleet["status"]["observedGeneration"] == fleet["metadata"]["generation"] and known == there

    until(seen, "what happened meanwhile in status and table", operator.process, 90)
    operator.wait_for("Ready", "AsPlanned")
    assert "are listed again" in operator.process.log.read_text()


@pytest.mark.slow
def test_connections_that_fall_silent_are_given_up_and_the_watch_goes_on(cluster: Cluster, namespace: str) -> None:
    target, port = urlsplit(cluster.plane.server).port, cluster.ports.take()
    assert target is not None
    with HalfOpenProxy(port, target) as proxy:
        kubeconfig = cluster.directory / f"{namespace}.kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig.read_text().replace(f":{target}", f":{port}"))
        operator = Operator(cluster, namespace, KUBECONFIG=str(kubeconfig), **LONG_LEASE)
        try:
            put_in_force(operator)
            proxy.freeze()
            operator.change({"suspend": True})
            operator.wait_for("Ready", "Suspended", seconds=150)
            assert operator.process.running
        finally:
            operator.process.stop()
