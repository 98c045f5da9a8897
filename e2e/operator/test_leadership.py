"""Two operators, one leader: it is stopped or killed in the middle of a rollout, and the standby goes on.

Each operator is a user of its own, so that the API server's audit log tells who wrote what, and when.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from signal import SIGCONT, SIGSTOP

import pytest

from e2e.harness.cluster import Cluster
from e2e.operator.operator_process import FLEET, SHORT_LEASE, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]


@pytest.fixture
def pair(cluster: Cluster, namespace: str) -> Iterator[tuple[Operator, Operator]]:
    """A leader and a standby, and a rollout that has begun: engines take so long to load that it is not over soon."""
    with ExitStack() as running:

        def start(name: str) -> Operator:
            kubeconfig = cluster.plane.identity(name, "system:masters")
            started = Operator(cluster, namespace, name=name, KUBECONFIG=str(kubeconfig), **SHORT_LEASE)
            running.callback(started.process.stop)
            return started

        first = start("first")
        first.wait_for_leader_other_than("")
        second = start("second")
        first.apply_sample(load="10s")
        first.wait_for_candidate()
        first.accept(first.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
        first.wait_for_deployment()
        yield first, second


def test_a_stopped_leader_that_wakes_up_writes_nothing_and_ends(pair: tuple[Operator, Operator]) -> None:
    first, second = pair
    holder = first.leader()
    first.process.send(SIGSTOP)
    second.wait_for_leader_other_than(holder)
    taken_over = first.audit_position()
    second.wait_for("Ready", "AsPlanned", seconds=120)

    first.process.send(SIGCONT)
    assert first.process.wait(30)
    assert [write for write in second.writes_since(taken_over) if write.user == "first"] == []
    assert second.process.running


def test_the_standby_of_a_killed_leader_finishes_its_rollout(pair: tuple[Operator, Operator]) -> None:
    first, second = pair
    holder, made = first.leader(), {item["metadata"]["uid"] for item in first.get("deployments")["items"]}
    first.process.kill()
    second.wait_for_leader_other_than(holder)
    second.wait_for("Ready", "AsPlanned", seconds=120)
    assert made <= {item["metadata"]["uid"] for item in second.get("deployments")["items"]}


def test_the_standby_writes_nothing_while_there_is_a_leader(pair: tuple[Operator, Operator]) -> None:
    first, second = pair
    first.wait_for("Ready", "AsPlanned", seconds=120)
    assert {write.user for write in first.writes_since(0)} == {"first"}
    assert second.process.running
