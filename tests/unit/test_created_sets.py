"""What created Deployments and LeaderWorkerSets look like."""

import copy
from typing import Any

import pytest
import yaml

from kvplan_operator.act.engine_sets import SetKind, TargetSet
from kvplan_operator.act.manifests import pods_of, set_name
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.act.targets import omitted_flags, target_sets
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.inventory import inventory_from_objects
from kvplan_operator.model.snapshot import ClusterView
from tests.planning import configuration, node
from tests.rollouts import pod_template, rollout_fleet, rollout_plan, snapshot_of

PLAN = rollout_plan({"tp2": ["a", "a", "b"]}, flags={"tp2": {"max-num-seqs": "64", "max-num-active-seqs": "40"}})


def sets(
    plan: RoutingPlan = PLAN, made: ServingFleet | None = None, template: Any = None, served: bool = False
) -> tuple[TargetSet, ...]:
    nodes = (node("a", 8), node("b", 8))
    cluster = ClusterView(nodes=nodes, template=template or pod_template(), worker_sets_served=served)
    snapshot = snapshot_of(made or rollout_fleet(), cluster)
    return target_sets(snapshot, plan, inventory_from_objects(nodes, (), snapshot.fleet))


def pod_of(target: TargetSet) -> Any:
    return target.manifest["spec"]["template"]


def engine_of(target: TargetSet) -> Any:
    return pod_of(target)["spec"]["containers"][0]


def test_there_is_a_deployment_per_configuration_and_node() -> None:
    found = sets()
    assert [(s.kind, s.nodes, s.replicas, s.footprint) for s in found] == [
        (SetKind.DEPLOYMENT, ("a",), 2, {"a": 2}),
        (SetKind.DEPLOYMENT, ("b",), 1, {"b": 2}),
    ]
    assert len({s.name for s in found}) == 2


def test_its_pods_run_on_its_node_alone_and_ask_for_their_gpus() -> None:
    target = sets()[0]
    required = pod_of(target)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    assert required == {"nodeSelectorTerms": [term]}
    for kind in ("requests", "limits"):
        assert engine_of(target)["resources"][kind] == {"nvidia.com/gpu": "2"}


def test_objects_and_pods_carry_labels_but_only_objects_the_plan() -> None:
    target = sets()[0]
    own = {"kvplan.dev/fleet": "demo", "kvplan.dev/configuration": "tp2", "kvplan.dev/set": target.name}
    assert target.manifest["metadata"]["labels"] == own | {"kvplan.dev/plan": PLAN.metadata.name}
    assert pod_of(target)["metadata"]["labels"] == own | {"app": "engine"}
    assert target.manifest["spec"]["selector"] == {"matchLabels": {"kvplan.dev/set": target.name}}
    assert "ownerReferences" not in target.manifest["metadata"]


def test_flags_follow_the_users_arguments_as_plain_values() -> None:
    assert engine_of(sets()[0])["args"] == [
        "--model=m",
        "--enable-force-include-usage",
        "--max-num-active-seqs=40",
        "--max-num-seqs=64",
        "--shutdown-timeout=600",
    ]


def test_a_pod_ends_after_its_requests() -> None:
    spec = pod_of(sets(made=rollout_fleet(rollout={"drainTimeoutSeconds": 300}))[0])["spec"]
    assert spec["containers"][0]["lifecycle"]["preStop"] == {"exec": {"command": ["sleep", "15"]}}
    assert spec["terminationGracePeriodSeconds"] > 15 + 300 + 15
    assert spec["containers"][0]["startupProbe"]["failureThreshold"] * 10 == 20 * 60
    assert spec["containers"][0]["readinessProbe"]["httpGet"] == {"path": "/health", "port": 8000}
    assert {"name": "kvplan-shm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]  # noqa: S108


def test_what_the_user_wrote_stays() -> None:
    template = pod_template(terminationGracePeriodSeconds=5_000, tolerations=[{"key": "own", "operator": "Exists"}])
    template["template"]["metadata"]["annotations"] = {"prometheus.io/scrape": "true"}
    container = template["template"]["spec"]["containers"][0]
    container["ports"] = [{"name": "http", "containerPort": 9_000}]
    container["readinessProbe"] = {"httpGet": {"path": "/mine", "port": 1}}
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": 40}}}
    container["resources"] = {"requests": {"cpu": "4"}}
    before = copy.deepcopy(template)
    made = rollout_fleet(nodes={"selector": {}, "tolerations": [{"key": "gpu", "operator": "Exists"}]})
    pod = pod_of(sets(made=made, template=template)[0])
    engine = pod["spec"]["containers"][0]
    assert template == before
    assert pod["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    assert pod["spec"]["terminationGracePeriodSeconds"] == 5_000
    assert [toleration["key"] for toleration in pod["spec"]["tolerations"]] == ["own", "gpu"]
    assert engine["readinessProbe"] == container["readinessProbe"]
    assert engine["startupProbe"]["httpGet"]["port"] == "http"
    assert engine["lifecycle"] == container["lifecycle"]
    assert engine["resources"]["requests"] == {"cpu": "4", "nvidia.com/gpu": "2"}


def test_equal_inputs_give_equal_objects_and_a_change_gives_other_names() -> None:
    names = [s.name for s in sets()]
    assert [s.manifest for s in sets()] == [s.manifest for s in sets()]
    image = pod_template(image="vllm/vllm-openai:v0.33.0")
    flags = rollout_plan({"tp2": ["a", "a", "b"]}, flags={"tp2": {"max-num-seqs": "65"}})
    for changed in (sets(template=image), sets(flags), sets(made=rollout_fleet(rollout={"drainTimeoutSeconds": 9}))):
        assert not {s.name for s in changed} & set(names)


def test_a_plan_that_changes_nothing_about_the_engines_keeps_their_names() -> None:
    more = rollout_plan({"tp1": ["b"], "tp2": ["a", "a", "b"]}, flags={"tp2": {
        "max-num-seqs": "64", "max-num-active-seqs": "40"}})  # fmt: skip
    assert {s.name for s in sets()} < {s.name for s in sets(more)}


def test_names_are_short_enough_and_told_apart() -> None:
    long, other = "f" * 52, "f" * 51 + "g"
    names = {set_name(name, "k" * 40, {"nodes": ["a"]}) for name in (long, other)}
    assert len(names) == 2
    assert all(len(name) <= 46 for name in names)


def test_flags_that_the_version_does_not_know_are_left_out_and_named() -> None:
    made = rollout_fleet(engine={"templateRef": {"name": "engine"}, "version": "0.20.0"})
    args = engine_of(sets(made=made)[0])["args"]
    assert args == ["--model=m", "--enable-force-include-usage", "--max-num-seqs=64", "--shutdown-timeout=600"]
    cluster = ClusterView(nodes=(node("a"),), template=pod_template())
    assert omitted_flags(snapshot_of(made, cluster), PLAN) == ("max-num-active-seqs",)


def test_the_images_tag_states_the_version_where_the_fleet_does_not() -> None:
    made = rollout_fleet(engine={"templateRef": {"name": "engine"}})
    args = engine_of(sets(made=made, template=pod_template(image="vllm/vllm-openai:v0.10.0"))[0])["args"]
    assert args == ["--model=m", "--max-num-seqs=64"]


def test_in_a_file_the_flags_are_named_after_their_digest() -> None:
    made = rollout_fleet(engine={"templateRef": {"name": "engine"}, "writeMode": "ConfigFile"})
    first, second = sets(made=made)
    assert first.config_map is not None
    assert first.config_map == second.config_map
    name = first.config_map["metadata"]["name"]
    assert yaml.safe_load(first.config_map["data"]["engine.yaml"]) == {
        "enable-force-include-usage": True,
        "max-num-active-seqs": "40",
        "max-num-seqs": "64",
        "shutdown-timeout": "600",
    }
    assert engine_of(first)["args"] == ["--model=m", "--config=/etc/kvplan/engine.yaml"]
    assert {"name": "kvplan-engine", "configMap": {"name": name}} in pod_of(first)["spec"]["volumes"]
    assert "ownerReferences" not in first.config_map["metadata"]


SPANNING: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], int]]] = {
    "one node": (("a", "a"), (("a",), 2)),
    "a stage each": (("a", "b"), (("a", "b"), 1)),
    "two stages each": (("a", "a", "b", "b"), (("a", "b"), 2)),
    "uneven nodes": (("a", "a", "b"), (("a", "a", "b"), 1)),
}


@pytest.mark.parametrize(("stages", "pods"), SPANNING.values(), ids=SPANNING.keys())
def test_pods_of_a_group_hold_equally_many_stages(stages: tuple[str, ...], pods: tuple[tuple[str, ...], int]) -> None:
    assert pods_of(stages) == pods


def spanning() -> tuple[RoutingPlan, ServingFleet]:
    k = configuration("tp2", 2, pipelineParallel=2, spanNodes=True)
    return rollout_plan({"tp2": [("a", "b")]}), rollout_fleet(configurations=[k])


def test_a_group_over_two_nodes_is_a_leader_and_a_worker() -> None:
    plan, made = spanning()
    (target,) = sets(plan, made, served=True)
    group = target.manifest["spec"]["leaderWorkerTemplate"]
    assert (target.kind, target.footprint, group["size"]) == (SetKind.WORKER_SET, {"a": 2, "b": 2}, 2)
    leader, worker = (group[role]["spec"]["containers"][0] for role in ("leaderTemplate", "workerTemplate"))
    assert "--headless" in worker["args"]
    assert "--headless" not in leader["args"]
    assert "readinessProbe" in leader
    assert "readinessProbe" not in worker
    for role, name in (("leaderTemplate", "a"), ("workerTemplate", "b")):
        affinity = group[role]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"] == [name]


def other_container() -> Any:
    template = pod_template()
    template["template"]["spec"]["containers"][0]["name"] = "server"
    return template


REFUSED: dict[str, tuple[dict[str, Any], ConditionReason, str]] = {
    "no template named": (
        {"made": rollout_fleet(engine={})}, ConditionReason.TEMPLATE_REFUSED, "templateRef is absent",
    ),
    "a template without the container": (
        {"template": other_container()}, ConditionReason.TEMPLATE_REFUSED, "containers has server: name one",
    ),
    "a shell": (
        {"template": pod_template(["sh", "-c", "vllm serve m"])}, ConditionReason.UNSUPPORTED_COMMAND, "a shell hides",
    ),
    "no LeaderWorkerSets": (
        dict(zip(("plan", "made"), spanning(), strict=True)), ConditionReason.NEEDS_LEADER_WORKER_SET, "spans a, b",
    ),
    "an unknown configuration": (
        {"plan": rollout_plan({"tp8": ["a"]})}, ConditionReason.STALE_PLAN, "names tp8",
    ),
    "no room for what a plan leaves open": (
        {"plan": rollout_plan({"tp4": ["?"] * 5}, placed=False)}, ConditionReason.INVENTORY_CHANGED, "group 5 of 5",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "reason", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(given: dict[str, Any], reason: ConditionReason, words: str) -> None:
    with pytest.raises(RolloutRefused, match=words) as caught:
        sets(**given)
    assert caught.value.refusal.reason is reason


def test_a_missing_template_is_named() -> None:
    snapshot = snapshot_of(rollout_fleet(), ClusterView(nodes=(node("a", 8), node("b", 8))))
    with pytest.raises(RolloutRefused, match=r"PodTemplate default/engine: .* does not exist"):
        target_sets(snapshot, PLAN, inventory_from_objects(snapshot.cluster.nodes, (), snapshot.fleet))


def test_an_autoscaler_of_a_created_deployment_is_refused() -> None:
    name = sets()[0].name
    scaler = {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": name}}}
    cluster = ClusterView(nodes=(node("a"), node("b")), template=pod_template(), autoscalers=(scaler,))
    snapshot = snapshot_of(rollout_fleet(), cluster)
    with pytest.raises(RolloutRefused, match=f"default/{name}: .* delete the autoscaler"):
        target_sets(snapshot, PLAN, inventory_from_objects(cluster.nodes, (), snapshot.fleet))


def test_an_open_placement_takes_the_tightest_fit_and_stays_where_groups_run() -> None:
    plan = rollout_plan({"tp4": ["?"], "tp2": ["?"]}, placed=False)
    nodes = (node("a", 8), node("b", 4))
    snapshot = snapshot_of(rollout_fleet(), ClusterView(nodes=nodes, template=pod_template()))
    found = target_sets(snapshot, plan, inventory_from_objects(nodes, (), snapshot.fleet))
    assert {(s.configuration, s.nodes) for s in found} == {("tp4", ("b",)), ("tp2", ("a",))}
