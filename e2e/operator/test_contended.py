"""Somebody else writes what kvplan writes: on a real API server, with real controllers.

A second field manager sets an adopted Deployment back whenever it differs, as Argo CD or Flux do where they heal; and a
person edits a Deployment that kvplan created.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.operator_process import FLEET, SAMPLE, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

ADOPTED = SAMPLE.with_name("adopted.yaml")
SET_BACK, RESTARTED = "kvplan.dev/set-back-at", "kvplan.dev/restarted-at"


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator for the test's namespace."""
    started = Operator(cluster, namespace)
    yield started
    started.process.stop()


HELD: dict[str, dict[str, Any]] = {
    "the command line": {
        "template": {"spec": {"containers": [{"name": "vllm", "args": ["Qwen/Qwen3-32B", "--max-num-seqs=4"]}]}}
    },
    "the replicas": {"replicas": 3},
}
"""Fields that another manager holds at a value that the plan does not want."""


def set_back(operator: Operator, fields: dict[str, Any]) -> None:
    """Write fields of the adopted Deployment as another manager; nothing is written where they are so."""
    patch = ["--field-manager=gitops", "--patch", json.dumps({"spec": fields})]
    operator.cluster.kubectl("patch", "deployment", "llm", f"--namespace={operator.namespace}", *patch)


def adopt(operator: Operator) -> None:
    """Apply a Deployment and the fleet that adopts it, and accept its plan."""
    operator.cluster.kubectl("apply", f"--namespace={operator.namespace}", f"--filename={ADOPTED}")
    accept(operator)


def accept(operator: Operator) -> None:
    """Accept the plan that waits."""
    operator.wait_for_candidate()
    operator.accept(operator.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])


def reason(operator: Operator, type_: str) -> str:
    """Of a condition of the fleet."""
    conditions = operator.get("fleet", FLEET)["status"]["conditions"]
    return str(next(c["reason"] for c in conditions if c["type"] == type_))


@pytest.mark.parametrize("field", HELD)
def test_after_five_flips_kvplan_stops_writing_and_says_who_should(operator: Operator, field: str) -> None:
    adopt(operator)

    def given_up() -> bool:
        set_back(operator, HELD[field])
        return reason(operator, "Contended") == "ForeignWriter"

    until(given_up, "a condition Contended", operator.process, 300)
    assert len(noted(operator.get("deployment", "llm"), SET_BACK)) == 5
    assert reason(operator, "Stalled") == "ForeignWriter"

    start = operator.audit_position()
    operator.change({"rollout": {"deadlineSeconds": 7_000}})
    generation = operator.get("fleet", FLEET)["metadata"]["generation"]
    until(
        lambda: operator.get("fleet", FLEET)["status"]["observedGeneration"] == generation,
        "another look", operator.process,
    )  # fmt: skip
    assert [write for write in operator.writes_since(start) if write.resource == "deployments"] == []


def test_what_kvplan_writes_once_and_nobody_undoes_is_no_fight(operator: Operator) -> None:
    adopt(operator)
    operator.wait_for("Ready", "AsPlanned", seconds=90)
    there = operator.get("deployment", "llm")
    assert "--max-num-seqs=4" not in there["spec"]["template"]["spec"]["containers"][0]["args"]
    assert noted(there, SET_BACK) == []
    assert len(noted(there, RESTARTED)) == there["spec"]["replicas"]


def test_a_template_that_somebody_edited_is_replaced_with_the_plans(operator: Operator) -> None:
    operator.apply_sample()
    accept(operator)
    operator.wait_for("Ready", "AsPlanned")
    edited = min(item["metadata"]["name"] for item in operator.get("deployments")["items"])
    place = f"--namespace={operator.namespace}"
    operator.cluster.kubectl("set", "env", f"deployment/{edited}", "BY_HAND=1", place)

    operator.wait_gone(f"deployment/{edited}", seconds=120)
    operator.wait_for("Ready", "AsPlanned", seconds=60)
    templates = [pod["spec"]["containers"][0] for pod in operator.get("pods")["items"]]
    assert not any("env" in container for container in templates)
    deployments = operator.get("deployments")["items"]
    assert sum(len(noted(item, SET_BACK)) for item in deployments) == 1
    assert sum(len(noted(item, RESTARTED)) for item in deployments) >= 1


def noted(item: dict[str, Any], annotation: str) -> list[str]:
    """Times that an annotation lists."""
    return [time for time in item["metadata"].get("annotations", {}).get(annotation, "").split(",") if time]
