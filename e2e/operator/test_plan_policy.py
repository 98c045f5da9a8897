"""Who decides on a plan: nobody, people, git or the policy; and what is said about digests that cannot be followed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.command_line import Kvplan
from e2e.operator.operator_process import FLEET, SAMPLE, Operator
from kvplan_operator.api.labels import ORIGIN_LABEL, ORIGIN_USER
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.digest import plan_digest, plan_name

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

UNKNOWN = "ab" * 32


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator with the sample fleet and the plan that it proposes."""
    started = Operator(cluster, namespace)
    started.apply_sample()
    started.wait_for_candidate()
    yield started
    started.process.stop()


def proposed(operator: Operator) -> str:
    """Digest of the plan that waits."""
    return str(operator.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])


def put_in_force(operator: Operator) -> str:
    """Accept the plan that waits; its digest."""
    digest = proposed(operator)
    operator.accept(digest)
    operator.wait_for("Ready", "AsPlanned")
    return digest


def current(operator: Operator) -> str:
    """Digest of the plan in force."""
    return str(operator.get("fleet", FLEET)["status"]["currentPlan"]["digest"])


def plan_of_people(operator: Operator) -> dict[str, Any]:
    """A plan on sixteen GPUs, made by a person with the command line from files."""
    nodes = operator.cluster.kubectl.get("nodes", "--selector=kvplan.dev/pool=serving")
    documents = [*yaml.safe_load_all(SAMPLE.read_text()), *nodes["items"]]
    next(item for item in documents if item["kind"] == "ServingFleet")["spec"]["nodes"]["maxGpus"] = 16
    file = operator.cluster.directory / f"{operator.namespace}.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    done = Kvplan(operator.cluster, operator.namespace).anywhere("plan", f"--filename={file}", "--output=yaml")
    assert done.code == 0, done.stderr
    plan: dict[str, Any] = yaml.safe_load(done.stdout)
    del plan["status"]
    return signed(operator, plan)


def signed(operator: Operator, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan under the name of its digest, as people's own, in the operator's namespace."""
    name = plan_name(RoutingPlan.model_validate(plan).spec)
    return plan | {"metadata": {"name": name, "namespace": operator.namespace, "labels": {ORIGIN_LABEL: ORIGIN_USER}}}


def digest_of(plan: dict[str, Any]) -> str:
    """As accepted."""
    return plan_digest(RoutingPlan.model_validate(plan).spec)


def wait_for_plan(operator: Operator, plan: dict[str, Any], type_: str, status: str) -> str:
    """Return the message of a plan's condition once it has a status."""
    path = f'--for=jsonpath={{.status.conditions[?(@.type=="{type_}")].status}}={status}'
    name, place = plan["metadata"]["name"], f"--namespace={operator.namespace}"
    operator.cluster.kubectl("wait", f"rplan/{name}", path, place, "--timeout=60s")
    conditions = operator.get("rplan", name)["status"]["conditions"]
    return str(next(c["message"] for c in conditions if c["type"] == type_))


def test_a_plan_that_people_made_is_checked_and_comes_in_force_when_accepted(operator: Operator) -> None:
    plan = plan_of_people(operator)
    operator.apply(plan)
    wait_for_plan(operator, plan, "Proposed", "True")
    operator.accept(digest_of(plan))
    operator.wait_for("Ready", "AsPlanned")
    assert current(operator) == digest_of(plan)
    used = sum(int(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]) for pod in pods(operator))
    assert 0 < used <= 16


def test_a_plan_of_people_that_breaks_a_constraint_is_refused_and_nothing_moves(operator: Operator) -> None:
    held, plan = put_in_force(operator), plan_of_people(operator)
    for group in plan["spec"]["groups"]:  # one group of each kind cannot serve what arrives
        group.update(replicas=1, placements=group["placements"][:1])
    broken = signed(operator, plan)
    operator.apply(broken)
    wait_for_plan(operator, broken, "Proposed", "False")
    operator.accept(digest_of(broken))
    operator.wait_for("PlanAccepted", "StalePlan")
    assert current(operator) == held


def test_a_digest_that_no_plan_has_is_told_and_the_plan_in_force_stays(operator: Operator) -> None:
    held, serving = put_in_force(operator), uids(operator)
    operator.accept(UNKNOWN)
    operator.wait_for("PlanAccepted", "UnknownDigest")
    operator.wait_for("Stalled", "UnknownDigest")
    assert (current(operator), uids(operator)) == (held, serving)
    operator.accept(held)
    operator.wait_for("Ready", "AsPlanned")


def test_an_accepted_plan_waits_while_the_fleet_is_suspended(operator: Operator) -> None:
    digest = proposed(operator)
    operator.change({"suspend": True})
    operator.wait_for("Ready", "Suspended")
    operator.accept(digest)
    until(lambda: observed(operator), "the accepted digest seen", operator.process)
    assert operator.get("deployments")["items"] == []
    operator.change({"suspend": False})
    operator.wait_for("Ready", "AsPlanned")
    assert current(operator) == digest


def test_the_policy_may_change_at_any_time(operator: Operator) -> None:
    operator.wait_for("Ready", "ProposedOnly")
    operator.change({"planPolicy": {"mode": "Approve"}})
    operator.wait_for("Ready", "AwaitingApproval")
    assert operator.get("deployments")["items"] == []
    operator.change({"planPolicy": {"mode": "Auto"}})
    operator.wait_for("Ready", "AsPlanned")
    serving = uids(operator)
    operator.change({"planPolicy": {"mode": "Approve"}})
    until(lambda: observed(operator), "the policy Approve seen", operator.process)
    operator.change({"planPolicy": {"mode": "DryRun"}})
    until(lambda: observed(operator), "the policy DryRun seen", operator.process)
    assert uids(operator) == serving


def test_a_rollback_needs_no_solver(operator: Operator, tmp_path: Path) -> None:
    old, people = put_in_force(operator), plan_of_people(operator)
    operator.apply(people)
    wait_for_plan(operator, people, "Proposed", "True")
    operator.accept(digest_of(people))
    until(lambda: current(operator) == digest_of(people), "the other plan in force", operator.process)
    operator.wait_for("Ready", "AsPlanned", seconds=180)

    operator.process.kill()
    (tmp_path / "highspy.py").write_text("raise ImportError('the solver library is broken')\n")
    command = operator.process.command
    operator.process.command = replace(command, environment={**command.environment, "PYTHONPATH": str(tmp_path)})
    operator.process.start()
    operator.accept(old)
    until(lambda: current(operator) == old, "the old plan in force", operator.process, 120)
    operator.wait_for("Ready", "AsPlanned", seconds=180)


def observed(operator: Operator) -> bool:
    """Whether the status is about the spec as it is."""
    fleet = operator.get("fleet", FLEET)
    return bool(fleet["status"]["observedGeneration"] == fleet["metadata"]["generation"])


def pods(operator: Operator) -> list[dict[str, Any]]:
    """Engines."""
    found: list[dict[str, Any]] = operator.get("pods")["items"]
    return found


def uids(operator: Operator) -> set[str]:
    """Of the engines."""
    return {pod["metadata"]["uid"] for pod in pods(operator)}
