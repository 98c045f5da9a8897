"""What of a large cluster a look at one fleet gets to see."""

from collections.abc import Mapping
from typing import Any

import pytest

from kvplan_operator.model.inventory import inventory_from_objects
from kvplan_operator.model.pods import name_of
from kvplan_operator.reconcile.relevance import relevant
from tests.planning import fleet, node, own_pod

Object = dict[str, Any]
FLEET = fleet()
NONE: Mapping[str, str] = {}
SELECTED, ELSEWHERE = node("selected", 8), node("elsewhere", 8, labels={"pool": "other"})


def pod(
    name: str, on: str = "selected", labels: Mapping[str, str] = NONE, *, gpus: int = 1, namespace: str = "default"
) -> Object:
    """A pod with labels such as ``fleet`` and ``configuration``."""
    found = own_pod(name, on, gpus)
    marks = {f"kvplan.dev/{label}": value for label, value in labels.items()}
    return {**found, "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": marks}}


def seen(*pods: Object, nodes: tuple[Object, ...] = (SELECTED, ELSEWHERE)) -> tuple[set[str], set[str]]:
    """Names of nodes and pods that are kept."""
    kept_nodes, kept_pods = relevant(FLEET, nodes, by_key(*pods))
    return set(map(name_of, kept_nodes)), set(map(name_of, kept_pods))


def by_key(*pods: Object) -> Mapping[tuple[str, str], Object]:
    return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in pods}


OWN = {"fleet": FLEET.metadata.name, "configuration": "tp1"}
OTHER = {"fleet": "other", "configuration": "tp1"}
KEPT: dict[str, tuple[Object, bool]] = {
    "an engine of its own": (pod("p", "selected", OWN), True),
    "an engine of its own on a node that is selected no more": (pod("p", "elsewhere", OWN), True),
    "an engine of its own on a node that is gone": (pod("p", "vanished", OWN), True),
    "an engine of its own that waits for a node": (pod("p", "", OWN), True),
    "a pod of its namespace that nobody labelled, such as one of an adopted Deployment": (pod("p", "elsewhere"), True),
    "a router with another fleet's label": (pod("p", "elsewhere", {"fleet": "other"}, gpus=0), True),
    "an engine of another fleet on its nodes": (pod("p", "selected", OTHER), True),
    "an engine of another fleet elsewhere": (pod("p", "elsewhere", OTHER), False),
    "a foreign pod with GPUs on its nodes": (pod("p", namespace="far"), True),
    "a foreign pod without GPUs on its nodes": (pod("p", gpus=0, namespace="far"), False),
    "a foreign pod with GPUs elsewhere": (pod("p", "elsewhere", namespace="far"), False),
}


@pytest.mark.parametrize("sentence", KEPT)
def test_pods_that_are_looked_at(sentence: str) -> None:
    item, kept = KEPT[sentence]
    assert seen(item)[1] == ({"p"} if kept else set())


def test_nodes_are_those_selected_and_those_the_fleet_runs_on() -> None:
    assert seen()[0] == {"selected"}
    assert seen(pod("p", "elsewhere", OWN))[0] == {"selected", "elsewhere"}
    assert seen(pod("p", "elsewhere", OTHER))[0] == {"selected"}


def test_where_no_node_is_selected_all_are_kept_to_say_why() -> None:
    assert seen(nodes=(ELSEWHERE,))[0] == {"elsewhere"}


def test_the_inventory_of_what_is_kept_is_that_of_the_whole_cluster() -> None:
    pods = [item | {"metadata": item["metadata"] | {"name": str(n)}} for n, (item, _) in enumerate(KEPT.values())]
    nodes, kept = relevant(FLEET, (SELECTED, ELSEWHERE), by_key(*pods))
    whole = inventory_from_objects((SELECTED, ELSEWHERE), pods, FLEET)
    narrow = inventory_from_objects(nodes, kept, FLEET)
    assert (narrow.nodes, narrow.running) == (whole.nodes, whole.running)
