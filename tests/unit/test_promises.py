"""GPUs that other fleets were promised count as taken, by node, until their pods are bound."""

from typing import Any

import pytest

from kvplan_operator.act.promises import promised_elsewhere
from tests.planning import pod
from tests.rollouts import rollout_fleet

Object = dict[str, Any]


def engine_set(nodes: str = "n0", replicas: int = 2, fleet: str = "other") -> Object:
    container = {"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    return {
        "metadata": {
            "name": "s", "namespace": "team", "annotations": {"kvplan.dev/nodes": nodes},
            "labels": {"kvplan.dev/fleet": fleet, "kvplan.dev/set": "s"},
        },
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }  # fmt: skip


def bound(node: str, **metadata: Any) -> Object:
    return pod("p", node, metadata={"namespace": "team", "labels": {"kvplan.dev/set": "s"}} | metadata)


PROMISES = {
    "a set without pods": (engine_set(), (), ({"n0": 4},)),
    "a set with one pod bound": (engine_set(), (bound("n0"),), ({"n0": 2},)),
    "a set whose pods are bound": (engine_set(replicas=1), (bound("n0"),), ()),
    "a pod that goes is replaced": (
        engine_set(replicas=1),
        (bound("n0", deletionTimestamp="2027-01-15T08:00:00Z"),),
        ({"n0": 2},),
    ),
    "a pod of the same set elsewhere": (engine_set(replicas=1), (bound("n0", namespace="else"),), ({"n0": 2},)),
    "groups across nodes": (engine_set("n0,n1", 1), (bound("n1"),), ({"n0": 2},)),
    "an object that is no engine set": (engine_set() | {"metadata": {"name": "s"}}, (), ()),
}


@pytest.mark.parametrize(("item", "pods", "wanted"), PROMISES.values(), ids=PROMISES.keys())
def test_what_is_promised_to(item: Object, pods: tuple[Object, ...], wanted: tuple[Any, ...]) -> None:
    assert promised_elsewhere([item], pods, rollout_fleet(2)) == wanted


def test_a_fleet_s_own_sets_are_left_out() -> None:
    fleet = rollout_fleet(2)
    own = engine_set(fleet=fleet.metadata.name)
    own["metadata"]["namespace"] = fleet.metadata.namespace
    assert promised_elsewhere([own], (), fleet) == ()
