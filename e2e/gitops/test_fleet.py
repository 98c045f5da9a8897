"""A fleet in git, kept by real Flux, planned by the operator: the walk that `manifests/gitops/README.md` describes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
import yaml

from e2e.gitops.flux import Flux
from e2e.gitops.repository import Repository
from e2e.gitops.team import KEPT, REPLACED, Accepted, Team, documents
from e2e.harness.cluster import Cluster
from e2e.operator.operator_process import FLEET, Operator
from kvplan_operator.api.labels import FIELD_MANAGER

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

IDLE_PRICE = 1_000
"""Makes the sample's first plan, which uses every GPU, dearer than one with fewer."""


@pytest.fixture
def team(flux: Flux, operator: Operator) -> Iterator[Team]:
    """A team whose fleet waits for its first accepted plan."""
    started = Team(flux, operator)
    yield started
    started.sync.delete()


@contextmanager
def frozen_solver(operator: Operator) -> Iterator[None]:
    """Nothing can be solved within the block."""
    (server,) = Path(f"/proc/{operator.process.pid}/task/{operator.process.pid}/children").read_text().split()
    os.kill(int(server), SIGSTOP)
    try:
        yield
    finally:
        os.kill(int(server), SIGCONT)


def comes_in_force(team: Team, accepted: Accepted) -> None:
    """Flux calls everything healthy in time, and that means that the plan is in force."""
    team.sync.wait_ready(90)
    assert team.in_force() == (accepted, ("True", "AsPlanned"))


def accept_first(team: Team) -> Accepted:
    """Accept the first plan and wait for it."""
    accepted = team.accept_candidate()
    comes_in_force(team, accepted)
    return accepted


def test_without_an_operator_a_fleet_is_applied_as_kubectl_would_and_is_never_called_healthy(
    cluster: Cluster, flux: Flux, namespace: str, repository: Repository
) -> None:
    without_classes = [item for item in documents() if item["kind"] != "RequestClass"]
    repository.write("fleet.yaml", *without_classes)
    repository.push("A fleet")
    sync = flux.follow(repository, namespace, timeout="10s")
    sync.wait_checking()
    assert sync.said()[:2] == ("Unknown", "Progressing")
    fleet = cluster.kubectl.get("fleet", FLEET, f"--namespace={namespace}")
    assert fleet["status"] == {"observedGeneration": -1}

    sync.wait_reason("HealthCheckFailed")
    assert f"ServingFleet/{namespace}/{FLEET} status: 'InProgress'" in sync.said()[2]
    manifests = yaml.safe_dump_all(without_classes)
    assert cluster.kubectl("diff", "--server-side", f"--namespace={namespace}", "--filename=-", stdin=manifests) == ""
    sync.delete()


@pytest.mark.parametrize("plan_file", [KEPT, pytest.param(REPLACED, marks=pytest.mark.slow)])
def test_a_plan_is_exported_committed_in_force_replaced_and_reverted(
    flux: Flux, operator: Operator, plan_file: str
) -> None:
    team = Team(flux, operator, plan_file=plan_file)
    assert team.ready() == ("True", "AwaitingApproval")
    assert team.engines() == {}

    first = team.accept_candidate()
    team.operator.wait_for("Ready", "RollingOut")
    assert team.sync.said()[:2] == ("Unknown", "Progressing")
    comes_in_force(team, first)
    assert team.sync.ready_since() >= team.ready_since()
    engines = team.engines()

    team.price_idle_gpus(IDLE_PRICE)
    second = team.accept_candidate()
    assert second != first
    comes_in_force(team, second)
    assert team.engines() != engines

    with frozen_solver(team.operator):
        team.repository.revert()
        team.sync.request()
        comes_in_force(team, first)
    assert team.engines() == engines
    team.sync.delete()


def test_two_syncs_at_rest_write_nothing(team: Team) -> None:
    accept_first(team)
    start = team.operator.audit_position()
    team.sync.now()
    team.sync.now()
    assert team.writes_since(start) == []


@pytest.mark.parametrize("seconds", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_an_edit_by_hand_is_set_back_by_flux_and_kvplan_writes_no_spec(
    flux: Flux, operator: Operator, seconds: int
) -> None:
    team = Team(flux, operator, interval="5s")
    accept_first(team)
    before, start = team.fleet(), team.operator.audit_position()
    team.edit({"planPolicy": {"mode": "DryRun"}, "suspend": True})
    team.operator.wait_for("Ready", "Suspended")
    team.operator.wait_for("Ready", "AsPlanned")
    settled = team.operator.audit_position()
    assert not team.operator.process.wait(seconds)

    after = team.fleet()
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 2  # there and back, once
    seen = team.writes_since(start)
    assert {w.manager for w in seen if w.resource == "servingfleets"} == {"kubectl-edit", "kustomize-controller"}
    assert {w.resource for w in seen if w.manager == FIELD_MANAGER} == {"servingfleets/status", "events"}
    assert [w for w in team.writes_since(settled) if w.resource != "events"] == []
    team.sync.delete()


def test_where_git_has_no_digest_an_approval_stays_and_where_it_has_git_wins(team: Team) -> None:
    assert team.kvplan("approve").returncode == 0
    team.operator.wait_for("Ready", "AsPlanned")
    approved = team.fleet()["spec"]["acceptedPlan"]["digest"]
    team.sync.now()
    assert team.fleet()["spec"]["acceptedPlan"] == {"digest": approved}

    first = team.accept(team.fleet()["status"]["currentPlan"])
    comes_in_force(team, first)
    engines = team.engines()

    team.price_idle_gpus(IDLE_PRICE)
    team.operator.wait_for_candidate()
    refused = team.kvplan("approve")
    assert refused.returncode == 2
    assert "field manager kustomize-controller owns spec.acceptedPlan.digest" in refused.stderr
    assert "git wins" in refused.stderr
    assert team.fleet()["spec"]["acceptedPlan"] == {"digest": first.digest}

    forced = team.kvplan("approve", "--force")
    assert forced.returncode == 0
    assert "its next sync wins" in forced.stderr
    assert team.fleet()["spec"]["acceptedPlan"] != {"digest": first.digest}
    team.operator.wait_for("Ready", "RollingOut")
    team.sync.request()
    comes_in_force(team, first)
    assert team.engines() == engines


def test_a_fleet_that_git_drops_goes_with_its_plans_and_tables_and_leaves_its_engines(
    cluster: Cluster, team: Team
) -> None:
    accepted = accept_first(team)
    engines = team.engines()
    owned = team.owned()
    assert {f"routingplan.kvplan.dev/{accepted.name}", f"configmap/{FLEET}-table"} <= owned

    team.drop_fleet(accepted)
    team.sync.wait_ready()
    cluster.kubectl("wait", "--for=delete", f"fleet/{FLEET}", *owned, f"--namespace={team.operator.namespace}")
    assert team.engines() == engines
    assert team.sync.inventory() == {"vllm", "chat", "code", "summarise"}


def test_a_fleet_deleted_by_hand_comes_back_from_git_and_keeps_its_engines(cluster: Cluster, team: Team) -> None:
    accepted = accept_first(team)
    engines, pods = team.engines(), team.pods()
    place = f"--namespace={team.operator.namespace}"
    cluster.kubectl("delete", "fleet", FLEET, place, "--cascade=foreground", "--timeout=60s")
    assert team.operator.get("routingplans.kvplan.dev")["items"] == []

    team.sync.now()
    comes_in_force(team, accepted)
    assert (team.engines(), team.pods()) == (engines, pods)


def test_classes_without_a_rate_do_not_keep_the_fleet_of_their_repository_out(
    flux: Flux, operator: Operator, repository: Repository
) -> None:
    manifests = documents()
    for request_class in (item for item in manifests if item["kind"] == "RequestClass"):
        del request_class["spec"]["arrivals"]
    repository.write("all.yaml", *manifests)
    repository.push("A fleet whose rates are to be measured")
    sync = flux.follow(repository, operator.namespace)
    sync.wait_ready()
    operator.wait_for("Ready", "ProposedOnly")
    assert operator.get("fleet", FLEET)["status"].get("candidatePlan") is None
    sync.delete()
