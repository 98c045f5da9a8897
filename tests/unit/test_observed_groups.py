"""Groups read off the objects, and the ledger of what they hold."""

from typing import Any

import pytest

from kvplan_operator.act.engine_sets import SetKind
from kvplan_operator.act.ledger import ledger
from kvplan_operator.act.observed_groups import ObservedSet
from kvplan_operator.act.observed_sets import observed_sets
from kvplan_operator.model.snapshot import ClusterView
from tests.planning import configuration, node, pod
from tests.rollouts import rollout_fleet

LWS = "leaderworkerset.sigs.k8s.io"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
OWN = {"kvplan.dev/fleet": "demo", "kvplan.dev/configuration": "tp2", "kvplan.dev/set": "s"}


def worker_set(replicas: int) -> dict[str, Any]:
    container = {"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    template = {"spec": {"containers": [container]}}
    return {
        "metadata": {"name": "s", "labels": OWN, "annotations": {"kvplan.dev/nodes": "a,b"}},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template},
        },
    }


def member(group: int, worker: int, on: str, **changes: Any) -> dict[str, Any]:
    name = f"s-{group}" + (f"-{worker}" if worker else "")
    labels = OWN | {f"{LWS}/name": "s", f"{LWS}/group-index": str(group), f"{LWS}/worker-index": str(worker)}
    return pod(name, on, 2, labels=labels, metadata={"uid": name}) | {"status": READY} | changes


def seen(*pods: dict[str, Any], replicas: int = 1, index: Any = None) -> ObservedSet:
    cluster = ClusterView(pods=pods, worker_sets=(worker_set(replicas),), worker_sets_served=True)
    (found,) = observed_sets(cluster, rollout_fleet(configurations=[configuration("tp2", 2)]), index)
    return found


def test_pods_of_a_group_index_are_one_group_with_its_leader_first() -> None:
    index = {"slots": [{"slot": "tp2-0", "podUID": "s-0", "state": "serving", "weightMilli": 1000}]}
    found = seen(member(0, 1, "b"), member(0, 0, "a"), index=index)
    assert (found.kind, found.footprint, found.promised) == (SetKind.WORKER_SET, {"a": 2, "b": 2}, 0)
    (group,) = found.groups
    assert (group.name, group.nodes, group.ready, group.slot, group.in_table) == (
        "s-0",
        ("a", "b"),
        True,
        "tp2-0",
        True,
    )


def test_a_group_is_ready_only_when_it_is_whole() -> None:
    (group,) = seen(member(0, 0, "a")).groups
    assert not group.ready
    assert seen(member(0, 0, "a")).promised == 1


def test_a_group_leaves_when_one_of_its_pods_does() -> None:
    going = member(0, 1, "b")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (group,) = seen(member(0, 0, "a"), going).groups
    assert (group.leaving, group.ready) == (True, False)
    assert group.due == 1_767_225_600.0


def test_a_drained_slot_is_no_longer_in_the_table() -> None:
    index = {"slots": [{"slot": "tp2-0", "podUID": "s-0", "state": "draining", "weightMilli": 0}]}
    (group,) = seen(member(0, 0, "a"), member(0, 1, "b"), index=index).groups
    assert (group.slot, group.in_table) == ("tp2-0", False)


HELD: dict[str, tuple[dict[str, Any], int]] = {
    "a running pod": (pod("p", "a", 3), 5),
    "a pod that is told to go": (pod("p", "a", 3, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), 5),
    "a pod that ended": (pod("p", "a", 3, phase="Failed"), 8),
    "a pod without a node": (pod("p", "", 3), 8),
    "a pod elsewhere": (pod("p", "b", 3), 8),
}


@pytest.mark.parametrize(("item", "free"), HELD.values(), ids=HELD.keys())
def test_free_gpus_beside(item: dict[str, Any], free: int) -> None:
    assert ledger([node("a", 8)], [item], "nvidia.com/gpu").free("a") == free


def test_what_was_promised_is_not_free_and_a_missing_node_has_nothing() -> None:
    book = ledger([node("a", 8)], [pod("p", "a", 3)], "nvidia.com/gpu", [{"a": 2}, {"a": 2}])
    assert (book.free("a"), book.free("gone")) == (1, 0)
    assert book.missing({"a": 2, "gone": 1}) == {"a": 1, "gone": 1}
    assert book.overdrawn() == ()
    assert ledger([node("a", 2)], [pod("p", "a", 3)], "nvidia.com/gpu").overdrawn() == ("a",)
