"""GPUs a fleet may use, GPUs it may not with the reason, and groups that run already."""

from typing import Any

import pytest

from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.model.inventory import ExclusionReason, Inventory, inventory_from_objects
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import GroupPlacement, NodeInput
from tests.planning import fleet, node, own_pod, pod

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
MIG_LABELS = {"pool": "serving", "nvidia.com/gpu.product": "NVIDIA-H200-MIG-1g.18gb"}
MIG_SLICES = {"nvidia.com/gpu": "4", "nvidia.com/mig-1g.18gb": "14"}

FREE: dict[str, tuple[list[Any], int]] = {
    "an empty node": ([], 8),
    "a foreign pod holds its GPUs": ([pod("x", gpus=3)], 5),
    "a pod without GPUs holds none": ([pod("x", gpus=0)], 8),
    "a Terminating pod still holds its GPUs": (
        [pod("x", gpus=3, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
        5,
    ),
    "a pod that ended holds none": ([pod("x", gpus=3, phase="Succeeded"), pod("y", gpus=2, phase="Failed")], 8),
    "a pod that waits for a node holds none": ([pod("x", on="", gpus=3)], 8),
    "a pod on another node holds nothing here": ([pod("x", on="b", gpus=3)], 8),
    "groups of the fleet count as free": ([own_pod("x", gpus=2)], 8),
    "the same labels in another namespace are foreign": (
        [own_pod("x", gpus=2, metadata={"namespace": "other"})],
        6,
    ),
    "a pod with the fleet's label but no configuration is foreign": (
        [pod("x", gpus=2, labels={"kvplan.dev/fleet": "demo"})],
        6,
    ),
    "more is held than offered": ([pod("x", gpus=9)], 0),
}


@pytest.mark.parametrize(("pods", "free"), FREE.values(), ids=FREE.keys())
def test_free_gpus_are_what_no_foreign_pod_holds(pods: list[Any], free: int) -> None:
    found = inventory_from_objects([node()], pods, fleet())
    assert found.gpus == free
    held = [(e.reason, e.gpus) for e in found.excluded]
    assert held == ([(ExclusionReason.FOREIGN_PODS, 8 - free)] if free < 8 else [])


EXCLUDED: dict[str, tuple[dict[str, Any], ExclusionReason, int]] = {
    "the selector does not match": ({"labels": {"pool": "batch"}}, ExclusionReason.NOT_SELECTED, 8),
    "the node is cordoned": ({"spec": {"unschedulable": True}}, ExclusionReason.CORDONED, 8),
    "the node is not ready": (
        {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        ExclusionReason.NODE_NOT_READY,
        8,
    ),
    "the node reports no condition Ready": ({"conditions": []}, ExclusionReason.NODE_NOT_READY, 8),
    "a taint is not tolerated": ({"spec": {"taints": [TAINT]}}, ExclusionReason.TAINT_NOT_TOLERATED, 8),
    "the GPUs are MIG slices under the plain name": ({"labels": MIG_LABELS}, ExclusionReason.PARTITIONED_GPUS, 8),
    "there is no GPU": ({"allocatable": {"cpu": "8"}}, ExclusionReason.NO_GPUS, 0),
}


@pytest.mark.parametrize(("changes", "reason", "gpus"), EXCLUDED.values(), ids=EXCLUDED.keys())
def test_a_node_is_left_out_with_the_reason(changes: dict[str, Any], reason: ExclusionReason, gpus: int) -> None:
    found = inventory_from_objects([node(**changes)], [], fleet())
    assert found.nodes == ()
    assert [(e.node, e.reason, e.gpus) for e in found.excluded] == [("a", reason, gpus)]
    assert found.excluded[0].message


def test_mig_slices_beside_whole_gpus_are_left_out_and_the_whole_ones_used() -> None:
    found = inventory_from_objects([node(allocatable=MIG_SLICES)], [], fleet())
    assert found.gpus == 4
    assert [(e.reason, e.gpus) for e in found.excluded] == [(ExclusionReason.PARTITIONED_GPUS, 14)]


TOLERATED: dict[str, tuple[dict[str, Any], bool]] = {
    "by key and effect": ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
    "by value": ({"key": "nvidia.com/gpu", "value": "present"}, True),
    "every taint": ({"operator": "Exists"}, True),
    "another value": ({"key": "nvidia.com/gpu", "value": "absent"}, False),
    "another effect": ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    "another key": ({"key": "dedicated", "operator": "Exists"}, False),
}


@pytest.mark.parametrize(("toleration", "covers"), TOLERATED.values(), ids=TOLERATED.keys())
def test_tolerations_work_as_the_scheduler_reads_them(toleration: dict[str, Any], covers: bool) -> None:
    nodes = {"selector": {}, "tolerations": [toleration]}
    found = inventory_from_objects([node(spec={"taints": [TAINT]})], [], fleet(nodes=nodes))
    assert found.gpus == (8 if covers else 0)


def test_a_taint_that_only_prefers_excludes_nothing() -> None:
    soft = {"key": "noisy", "effect": "PreferNoSchedule"}
    assert inventory_from_objects([node(spec={"taints": [soft]})], [], fleet()).gpus == 8


SELECTORS: dict[str, tuple[dict[str, Any], bool]] = {
    "an empty selector": ({}, True),
    "an equal label": ({"matchLabels": {"pool": "serving"}}, True),
    "one of two labels": ({"matchLabels": {"pool": "serving", "zone": "x"}}, False),
    "In": ({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["serving"]}]}, True),
    "NotIn": ({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["serving"]}]}, False),
    "NotIn of an absent label": (
        {"matchExpressions": [{"key": "no", "operator": "NotIn", "values": ["x"]}]},
        True,
    ),
    "Exists": ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    "DoesNotExist": ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
}


@pytest.mark.parametrize(("selector", "selected"), SELECTORS.values(), ids=SELECTORS.keys())
def test_selectors_mean_what_kubernetes_means(selector: dict[str, Any], selected: bool) -> None:
    found = inventory_from_objects([node()], [], fleet(nodes={"selector": selector}))
    assert bool(found.nodes) is selected


REQUESTS: dict[str, tuple[dict[str, Any], int]] = {
    "containers add up": ({"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}] * 2}, 2),
    "limits stand in for requests": ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]}, 2),
    "a larger init container counts": (
        {"initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]},
        4,
    ),
    "a sidecar adds to the containers": (
        {"initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        2,
    ),
    "resources of the whole pod count": ({"resources": {"requests": {"nvidia.com/gpu": "3"}}}, 3),
}


@pytest.mark.parametrize(("spec", "held"), REQUESTS.values(), ids=REQUESTS.keys())
def test_a_pod_holds_what_its_containers_ask_for(spec: dict[str, Any], held: int) -> None:
    assert inventory_from_objects([node()], [pod("x", gpus=1, spec=spec)], fleet()).gpus == 8 - held


def test_pods_of_the_fleet_are_running_groups() -> None:
    pods = [own_pod("y", "b", 2, "tp2"), own_pod("x", "a", 1, "tp1"), own_pod("z", "a", 1, "tp1")]
    found = inventory_from_objects([node("a"), node("b")], pods, fleet())
    one, two = GroupPlacement("tp1", ("a",)), GroupPlacement("tp2", ("b",))
    assert found.running == (one, one, two)


def adopted(template_hash: str, namespace: str = "default") -> dict[str, Any]:
    """A pod of the Deployment ``engines`` as its ReplicaSet makes it, without labels of kvplan."""
    owners = [{"kind": "ReplicaSet", "name": f"engines-{template_hash}"}]
    metadata = {"namespace": namespace, "ownerReferences": owners}
    return pod("x", gpus=2, labels={"pod-template-hash": "5f6d"}, metadata=metadata)


ADOPTED: dict[str, tuple[dict[str, Any], int]] = {
    "its ReplicaSet is the Deployment's": (adopted("5f6d"), 1),
    "its ReplicaSet is another Deployment's with a longer name": (adopted("big-5f6d"), 0),
    "it is in another namespace": (adopted("5f6d", namespace="other"), 0),
}


@pytest.mark.parametrize(("engine", "groups"), ADOPTED.values(), ids=ADOPTED.keys())
def test_a_pod_belongs_to_an_adopted_deployment_if(engine: dict[str, Any], groups: int) -> None:
    made = fleet(configurations=[{"name": "tp2", "tensorParallel": 2, "deployment": "engines"}])
    found = inventory_from_objects([node()], [engine], made)
    assert len(found.running) == groups
    assert found.gpus == (8 if groups else 6)


NOT_RUNNING: dict[str, dict[str, Any]] = {
    "it is told to go": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    "its configuration is no candidate any more": {"group": "tp16"},
    "its node is left out": {"on": "cordoned"},
}


@pytest.mark.parametrize("changes", NOT_RUNNING.values(), ids=NOT_RUNNING.keys())
def test_a_group_does_not_stay_if(changes: dict[str, Any]) -> None:
    nodes = [node("a"), node("cordoned", spec={"unschedulable": True})]
    assert inventory_from_objects(nodes, [own_pod("x", **changes)], fleet()).running == ()


def test_the_pods_of_a_worker_set_make_one_group_with_stages_in_order() -> None:
    wide = {"name": "wide", "tensorParallel": 2, "pipelineParallel": 2, "spanNodes": True}
    name, index = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"
    worker = "leaderworkerset.sigs.k8s.io/worker-index"
    pods = [
        own_pod("w1", "a", 2, "wide", labels={name: "wide", index: "0", worker: "1"}),
        own_pod("w0", "b", 2, "wide", labels={name: "wide", index: "0", worker: "0"}),
    ]
    found = inventory_from_objects([node("a"), node("b")], pods, fleet(configurations=[wide]))
    assert found.running == (GroupPlacement("wide", ("b", "a")),)


def test_the_product_is_the_label_and_else_the_preset() -> None:
    unlabelled = node("b", labels={"pool": "serving"})
    preset = {"selector": {"matchLabels": {"pool": "serving"}}, "gpuPreset": "h200_sxm"}
    found = inventory_from_objects([node("a"), unlabelled], [], fleet(nodes=preset))
    assert found.nodes == (NodeInput("a", 8, "NVIDIA-H200"), NodeInput("b", 8, "h200_sxm"))


def test_the_order_of_nodes_and_pods_does_not_count() -> None:
    nodes, pods = [node("a"), node("b", 4)], [own_pod("x"), pod("y", "b", 2), own_pod("z", "b", 2, "tp2")]
    forwards = inventory_from_objects(nodes, pods, fleet())
    assert inventory_from_objects(nodes[::-1], pods[::-1], fleet()) == forwards


BROKEN: dict[str, tuple[list[Any], list[Any], str]] = {
    "a node twice": ([node("a"), node("a")], [], "Node: metadata.name is 'a'"),
    "a node without a name": ([node("")], [], "Node: metadata.name"),
    "a fraction of a GPU on a node": ([node("a", "7500m")], [], "Node a: status.allocatable[nvidia.com/gpu]"),
    "a fraction of a GPU in a pod": (
        [node("a")],
        [pod("x", spec={"containers": [{"resources": {"limits": {"nvidia.com/gpu": "0.5"}}}]})],
        "Pod x: resources.limits[nvidia.com/gpu] is '0.5'",
    ),
}


@pytest.mark.parametrize(("nodes", "pods", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_objects_are_refused_by_name(nodes: list[Any], pods: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        inventory_from_objects(nodes, pods, fleet())
    assert message in str(caught.value)


HOLLOW: dict[str, Any] = {
    "no spec and no status": {"metadata": {"name": "a"}},
    "nulls in place of parts": {"metadata": {"name": "a", "labels": None}, "spec": None, "status": None},
    "nulls in place of lists": {"metadata": {"name": "a"}, "spec": {"taints": None}, "status": {"conditions": None}},
}


@pytest.mark.parametrize("hollow", HOLLOW.values(), ids=HOLLOW.keys())
def test_a_hollow_node_offers_nothing_and_breaks_nothing(hollow: Any) -> None:
    found = inventory_from_objects([hollow], [], fleet(nodes={"selector": {}}))
    assert [e.reason for e in found.excluded] == [ExclusionReason.NODE_NOT_READY]


@pytest.mark.parametrize(
    "hollow", [{}, {"metadata": None, "spec": None}, {"spec": {"nodeName": "a", "containers": None}}]
)
def test_a_hollow_pod_holds_nothing_and_breaks_nothing(hollow: Any) -> None:
    assert inventory_from_objects([node()], [hollow], fleet()).gpus == 8


def test_no_nodes_make_an_empty_inventory() -> None:
    assert inventory_from_objects([], [], fleet()) == Inventory((), (), ())


def test_reasons_of_selected_nodes_are_words_of_the_api() -> None:
    words = {reason.value for reason in ConditionReason}
    assert {reason.value for reason in ExclusionReason} <= words
