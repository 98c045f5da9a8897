"""Defaults, wire names and behaviour of the API types."""

import pytest
from pydantic import ValidationError

from kvplan_operator.api.common import LabelSelector
from kvplan_operator.api.fleet import ServingFleetSpec
from kvplan_operator.api.fleet_engine import Configuration, Model, Nodes
from kvplan_operator.api.labels import API_VERSION, GROUP, VERSION
from kvplan_operator.api.request_class import RequestClassSpec, Slo, TokenCounts

SMALLEST = ServingFleetSpec(
    model=Model(preset="Qwen/Qwen3-32B"),
    nodes=Nodes(selector=LabelSelector()),
    configurations=(
        Configuration(name="tp1", tensor_parallel=1),
        Configuration(name="tp2", tensor_parallel=2),
    ),
)


def test_the_smallest_fleet_has_the_defaults_the_design_states() -> None:
    wire = SMALLEST.to_wire()
    assert wire["objective"] == {
        "preemptionCostRatio": 10, "latencyWeight": 5, "rejectionWeight": 5000, "gpuSecondWeight": 0,
        "idleGpuSecondWeight": 0, "switchingWeight": 0, "headroomMilli": 200,
    }  # fmt: skip
    assert wire["uncertainty"] == {
        "ambiguity": "Wasserstein1", "radius": {"relativeMilli": 150}, "windowSeconds": 3600,
    }  # fmt: skip
    assert wire["solver"] == {"method": "Certified", "timeLimitSeconds": 10, "gapTargetMilli": 5}
    assert wire["planPolicy"] == {"mode": "DryRun", "historyLimit": 10}
    assert wire["prometheus"] == {"profile": "default"}
    assert (wire["acceptedPlan"], wire["suspend"]) == ({}, False)


def test_what_is_absent_is_not_written_as_null() -> None:
    assert SMALLEST.to_wire()["model"] == {
        "preset": "Qwen/Qwen3-32B",
    }  # fmt: skip


def test_a_class_needs_only_its_promise_and_its_longest_output() -> None:
    spec = RequestClassSpec(slo=Slo(latency_milliseconds=1), tokens=TokenCounts(max_output=1))
    assert spec.to_wire() == {
        "match": {"headers": [], "models": []}, "priority": 0, "slo": {"latencyMilliseconds": 1},
        "tokens": {"maxOutput": 1}, "arrivals": {}, "outputLengths": {}, "costs": {},
        "queue": {}, "shed": "TooManyRequests",
    }  # fmt: skip


def test_python_names_and_wire_names_make_the_same_object() -> None:
    by_wire = Configuration.model_validate({"name": "tp4", "tensorParallel": 4, "kvCapacityTokens": 9})
    assert by_wire == Configuration(name="tp4", tensor_parallel=4, kv_capacity_tokens=9)


def test_objects_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        SMALLEST.suspend = True  # type: ignore[misc]


def test_a_rule_holds_for_objects_made_in_python_too() -> None:
    with pytest.raises(ValidationError, match=r"give model\.name, model\.preset or both"):
        Model(layers=1)


def test_the_api_version_is_group_and_version() -> None:
    assert f"{GROUP}/{VERSION}" == API_VERSION
