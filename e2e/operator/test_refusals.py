"""What kvplan does not do is refused with a reason, before anything is written."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.operator_process import FLEET, SAMPLE, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

SWITCHES = {
    "LoRA adapters": ["--enable-lora"],
    "LoRA adapters by name": ["--lora-modules", "sql=/adapters/sql"],
    "disaggregated prefill": ['--kv-transfer-config={"kv_role": "kv_producer"}'],
}


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator without a fleet."""
    started = Operator(cluster, namespace)
    yield started
    started.process.stop()


def documents(arguments: list[str], **fleet: Any) -> list[dict[str, Any]]:
    """The sample with more arguments of its engines and other fields of its fleet."""
    found = list(yaml.safe_load_all(SAMPLE.read_text()))
    for item in found:
        if item["kind"] == "PodTemplate":
            item["template"]["spec"]["containers"][0]["args"] += arguments
        if item["kind"] == "ServingFleet":
            item["spec"].update(fleet)
    return found


def message(operator: Operator, type_: str) -> str:
    """Of a condition of the fleet."""
    conditions = operator.get("fleet", FLEET)["status"]["conditions"]
    return str(next(c["message"] for c in conditions if c["type"] == type_))


def names(operator: Operator, flag: str) -> bool:
    """Whether the reason why there is no plan names a flag."""
    return flag in message(operator, "PlanFeasible")


def test_engines_that_it_cannot_plan_for_are_named_and_planned_once_they_are_not_used(operator: Operator) -> None:
    for arguments in SWITCHES.values():
        operator.apply(*documents(arguments))
        flag = arguments[0].partition("=")[0]
        operator.wait_for("PlanFeasible", "InputsRefused")
        until(partial(names, operator, flag), f"{flag} named as the reason", operator.process, 30)
        assert "PodTemplate vllm" in message(operator, "PlanFeasible")
        operator.apply_sample()
        operator.wait_for_candidate()
    assert operator.get("deployments")["items"] == []


def test_groups_on_several_nodes_without_leader_worker_sets_are_no_choice_and_that_is_told(operator: Operator) -> None:
    spanning = {"name": "tp8pp2", "tensorParallel": 8, "pipelineParallel": 2, "spanNodes": True}
    operator.apply(*documents([], configurations=[spanning]))
    operator.wait_for("PlanFeasible", "InputsRefused")
    assert "tp8pp2: its groups may span nodes: install LeaderWorkerSet" in message(operator, "PlanFeasible")
    operator.change({"configurations": [spanning, {"name": "tp4", "tensorParallel": 4}]})
    operator.wait_for_candidate()
    plan = operator.get("rplan", operator.get("fleet", FLEET)["status"]["candidatePlan"]["name"])
    assert {group["configuration"] for group in plan["spec"]["groups"] if group["replicas"]} == {"tp4"}
