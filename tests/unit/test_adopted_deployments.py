"""Adopted Deployments: what is patched, what is left alone, what is refused."""

import copy
from typing import Any

import pytest

from kvplan_operator.act.adopted import adopted_target, needs_patch
from kvplan_operator.act.engine_sets import TargetSet
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.api.conditions import ConditionReason
from tests.planning import configuration
from tests.rollouts import rollout_fleet, rollout_plan

K = configuration("tp2", 2, deployment="chat")
GROUP = rollout_plan({"tp2": ["?", "?"]}, flags={"tp2": {"max-num-seqs": "32"}}, deployments={"tp2": "chat"})


def deployment(args: list[str] | None = None, gpus: int = 2, **strategy: Any) -> dict[str, Any]:
    container = {
        "name": "vllm", "image": "vllm/vllm-openai:v0.32.0", "args": args or ["--model=m", "--max-num-seqs", "8"],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }  # fmt: skip
    rolling = {"maxSurge": 0, "maxUnavailable": 1} | strategy
    return {
        "metadata": {"name": "chat", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "replicas": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {}, "spec": {"containers": [{"name": "proxy"}, container]}},
        },
    }


def target(
    item: dict[str, Any] | None,
    *,
    planned: bool = True,
    scalers: list[Any] | None = None,
    adopted_by: str | None = None,
    **fleet: Any,
) -> TargetSet:
    made = rollout_fleet(**({"configurations": [K], "engine": {"version": "0.32.0"}} | fleet))
    group = GROUP.spec.groups[0] if planned else None
    return adopted_target(
        made, made.spec.configurations[0], group, item, plan_name=GROUP.metadata.name, autoscalers=scalers or (),
        adopted_by=adopted_by,
    )  # fmt: skip


def test_only_replicas_and_the_command_line_are_written() -> None:
    made = target(deployment())
    assert made.manifest["metadata"] == {
        "name": "chat", "namespace": "default", "labels": {"kvplan.dev/plan": GROUP.metadata.name},
    }  # fmt: skip
    args = ["--model=m", "--max-num-seqs", "32", "--enable-force-include-usage", "--shutdown-timeout=600"]
    container = {"name": "vllm", "args": args}
    assert made.manifest["spec"] == {"replicas": 2, "template": {"spec": {"containers": [container]}}}
    assert needs_patch(made, deployment())


def test_engines_that_start_as_wanted_are_not_patched() -> None:
    once = deployment()
    once["spec"]["template"]["spec"]["containers"][1]["args"] = target(once).manifest["spec"]["template"]["spec"][
        "containers"
    ][0]["args"]
    assert "template" not in target(once).manifest["spec"]
    assert not needs_patch(target(once), once)


def test_a_configuration_that_the_plan_leaves_out_runs_no_group() -> None:
    assert target(deployment(), planned=False).manifest["spec"] == {"replicas": 0}


def test_flags_in_a_file_come_with_their_volume() -> None:
    made = target(deployment(), engine={"version": "0.32.0", "writeMode": "ConfigFile"})
    assert made.config_map is not None
    pod = made.manifest["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["--model=m", "--config=/etc/kvplan/engine.yaml"]
    assert pod["volumes"] == [{"name": "kvplan-engine", "configMap": {"name": made.config_map["metadata"]["name"]}}]
    patched = copy.deepcopy(deployment())
    patched["spec"]["template"]["metadata"] = made.manifest["spec"]["template"]["metadata"]
    patched["spec"]["template"]["spec"] |= pod
    assert not needs_patch(made, patched)


def test_replicas_of_an_autoscaler_are_left_alone() -> None:
    scaler = {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}}}
    made = target(deployment(), scalers=[scaler])
    assert made.replicas_external
    assert "replicas" not in made.manifest["spec"]
    assert "template" in made.manifest["spec"]


REFUSED: dict[str, tuple[Any, dict[str, Any], ConditionReason, str]] = {
    "one that does not exist": (None, {}, ConditionReason.ADOPTION_REFUSED, "does not exist: create it"),
    "one that two configurations share": (
        deployment(), {"configurations": [K, configuration("tp1", 1, deployment="chat")]},
        ConditionReason.ADOPTION_REFUSED, "configurations tp2, tp1 share it",
    ),
    "pods that ask for other GPUs": (
        deployment(gpus=4), {}, ConditionReason.ADOPTION_REFUSED, "ask for 4 nvidia.com/gpu, and .* tp2 takes 2",
    ),
    "a surge": (deployment(maxSurge=1), {}, ConditionReason.ROLLOUT_WOULD_DEADLOCK, "set maxSurge 0 and maxUnav"),
    "a share of pods": (deployment(maxUnavailable="25%"), {}, ConditionReason.ROLLOUT_WOULD_DEADLOCK, "'25%'"),
    "a shell": (deployment(["sh", "-c", "vllm serve"]), {}, ConditionReason.UNSUPPORTED_COMMAND, "a shell hides"),
}  # fmt: skip


@pytest.mark.parametrize(("item", "fleet", "reason", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(item: Any, fleet: dict[str, Any], reason: ConditionReason, words: str) -> None:
    with pytest.raises(RolloutRefused, match=words) as caught:
        target(item, **fleet)
    assert caught.value.refusal.reason is reason


def test_a_surge_does_no_harm_while_no_pod_is_replaced() -> None:
    once = deployment()
    args = target(once).manifest["spec"]["template"]["spec"]["containers"][0]["args"]
    assert target(deployment(args, maxSurge=1)).replicas == 2


def test_a_deployment_that_an_earlier_fleet_adopts_is_refused() -> None:
    with pytest.raises(RolloutRefused, match="fleet first adopts it") as raised:
        target(deployment(), adopted_by="first")
    assert raised.value.refusal.reason is ConditionReason.ADOPTION_REFUSED
