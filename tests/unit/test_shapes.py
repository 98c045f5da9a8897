"""The shape of Nodes and Pods: a wrong type is named by field and never read as empty."""

from typing import Any

import pytest

from kvplan_operator.model.shapes import NODE, POD, check_shape
from kvplan_solver.errors import InvalidInput

GOOD_NODE: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": False},
    "status": {"allocatable": {"nvidia.com/gpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]},
}

WRONG: dict[str, tuple[object, Any, str]] = {
    "metadata is a text": ({"metadata": "a"}, NODE, "metadata is 'a': write a mapping"),
    "a label is a number": ({"metadata": {"labels": {"x": 5}}}, NODE, "metadata.labels[x] is 5: write a string"),
    "taints are a mapping": ({"spec": {"taints": {"key": "k"}}}, NODE, "spec.taints is {'key': 'k'}: write a list"),
    "a taint is a text": ({"spec": {"taints": ["k"]}}, NODE, "spec.taints[0] is 'k': write a mapping"),
    "a taint is null": ({"spec": {"taints": [None]}}, NODE, "spec.taints[0] is absent: write a mapping"),
    "a cordon is a text": ({"spec": {"unschedulable": "no"}}, NODE, "spec.unschedulable is 'no': write true or false"),
    "conditions are a text": ({"status": {"conditions": "Ready"}}, NODE, "status.conditions is 'Ready': write a list"),
    "a condition's status is a boolean": (
        {"status": {"conditions": [{"type": "Ready", "status": True}]}},
        NODE,
        "status.conditions[0].status is True: write a string",
    ),
    "allocatable is a list": ({"status": {"allocatable": [2]}}, NODE, "status.allocatable is [2]: write a mapping"),
    "containers are a mapping": ({"spec": {"containers": {}}}, POD, "spec.containers is {}: write a list"),
    "requests are a number": (
        {"spec": {"containers": [{"resources": {"requests": 8}}]}},
        POD,
        "spec.containers[0].resources.requests is 8: write a mapping",
    ),
    "a node name is a number": ({"spec": {"nodeName": 3}}, POD, "spec.nodeName is 3: write a string"),
}


@pytest.mark.parametrize("case", WRONG, ids=list(WRONG))
def test_a_wrong_type_is_named_by_field(case: str) -> None:
    value, shape, message = WRONG[case]
    with pytest.raises(InvalidInput) as refusal:
        check_shape("Object o", value, shape)
    assert str(refusal.value).startswith(f"Object o: {message}")


@pytest.mark.parametrize("value", [GOOD_NODE, {}, {"spec": None, "status": {"conditions": None}}, {"extra": 3}])
def test_absent_null_and_unread_fields_are_fine(value: object) -> None:
    check_shape("Node a", value, NODE)
    check_shape("Pod a", {"status": {"phase": "Running"}}, POD)
