"""The RoutingPlan as a document: integers, names, flags, status; and which of it is digested."""

import json
from importlib.metadata import version
from typing import Any

import pytest

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.digest import canonical_json, check_plan_name
from kvplan_operator.plan.document import SOLVER_VERSION, planned_batches
from kvplan_operator.plan.engine_flags import TOKEN_GRID, PlannedConfiguration, engine_flags
from kvplan_operator.plan.planner import make_plan, solver_options
from kvplan_solver.instance import ConfigurationInput
from tests.planning import demo, fleet, inputs, plan, sample


def test_the_plan_survives_its_own_schema_and_is_named_after_its_digest() -> None:
    document = sample().plan.to_wire()
    (again,) = load_manifests([document]).plans
    assert again == sample().plan
    check_plan_name(again)


def test_the_digested_spec_holds_integers_only() -> None:
    assert canonical_json(sample().plan.spec.to_wire())


def test_the_solver_version_is_the_packages() -> None:
    assert version("kvplan") == SOLVER_VERSION


def test_groups_and_classes_are_in_order_of_name() -> None:
    spec = sample().plan.spec
    assert [c.name for c in spec.classes] == ["chat", "code", "summarise"]
    assert [g.configuration for g in spec.groups] == sorted(g.configuration for g in spec.groups)
    for group in spec.groups:
        assert list(group.placements) == sorted(group.placements, key=lambda p: p.stages)
        assert len(group.placements) == group.replicas


def test_a_clock_changes_the_status_and_not_the_plan() -> None:
    ticks = iter(range(10_000_000))
    timed = make_plan(inputs().problem(), solver_options(fleet(), clock=lambda: next(ticks) / 1000))
    assert timed.plan.spec == demo().plan.spec
    assert timed.plan.metadata.name == demo().plan.metadata.name
    assert timed.plan.status.solve is not None
    assert timed.plan.status.solve.duration_milliseconds > 0


POLICY: dict[str, Any] = {
    "the accepted plan": {"acceptedPlan": {"digest": "a" * 64}},
    "the policy": {"planPolicy": {"mode": "Auto"}},
    "suspension": {"suspend": True},
}


@pytest.mark.parametrize("spec", POLICY.values(), ids=POLICY.keys())
def test_the_plan_does_not_depend_on(spec: dict[str, Any]) -> None:
    assert plan(inputs(fleet=fleet(**spec))).plan.spec == demo().plan.spec


def test_another_objective_is_another_plan_even_where_the_decision_is_the_same() -> None:
    other = plan(inputs(fleet=fleet(objective={"rejectionWeight": 5001})))
    assert other.plan.spec.inputs_digest != demo().plan.spec.inputs_digest
    assert other.plan.spec.groups == demo().plan.spec.groups


def test_status_tells_cost_bound_gap_and_forecast() -> None:
    status, result = demo().plan.status, demo().result
    assert status.objective is not None
    assert status.forecast is not None
    assert status.solve is not None
    costs = status.objective.costs
    assert costs.total_milli == round(result.objective * 1000)
    assert status.objective.lower_bound_milli is not None
    assert status.objective.lower_bound_milli <= costs.total_milli
    assert status.objective.gap_milli == -(-round(result.gap * 1e9) // 1_000_000)
    assert [c.name for c in status.forecast.classes] == ["chat", "code"]
    assert all(0 < c.mean_latency_milliseconds <= 10_000 for c in status.forecast.classes)
    assert all(0 < g.utilisation_milli <= 980 for g in status.forecast.groups)


def test_a_route_reserves_less_where_the_prefix_is_cached() -> None:
    chat = demo().plan.spec.classes[0]
    assert chat.prefix_cached_on
    assert chat.cached_prefix_tokens == 64
    cached = [route for route in chat.routes if route.configuration in chat.prefix_cached_on]
    assert {chat.reservation_tokens - route.reservation_tokens for route in cached} == {64}


def test_an_adopted_deployment_is_named_on_its_group() -> None:
    configurations = [k.to_wire() | {"deployment": f"engine-{k.name}"} for k in fleet().spec.configurations]
    for group in plan(inputs(fleet=fleet(configurations=configurations))).plan.spec.groups:
        assert group.deployment == f"engine-{group.configuration}"


def annotated(text: str) -> RoutingPlan:
    made = demo().plan
    metadata = made.metadata.model_copy(update={"annotations": {"kvplan.dev/planned-batch": text}})
    return made.model_copy(update={"metadata": metadata})


BATCHES: dict[str, tuple[str, dict[str, float]]] = {
    "two": ("tp1=12.5,tp2=80", {"tp1": 12.5, "tp2": 80.0}),
    "none": ("", {}),
    "nonsense": ("tp1=fast,tp2,=,tp4=-3,tp8=nan,tp16=2", {"tp16": 2.0}),
    "less than one sequence": ("tp1=0.5", {}),
}


@pytest.mark.parametrize(("text", "batches"), BATCHES.values(), ids=BATCHES.keys())
def test_the_planned_batch_is_read_with_care(text: str, batches: dict[str, float]) -> None:
    assert planned_batches(annotated(text)) == batches


# Engine flags

MODEL = {"name": "Qwen/Qwen3-32B"}


def flags(
    made: ServingFleet | None = None, *, reservation: float = 1000.0, budget: int = 60_000, **shape: Any
) -> dict[str, str]:
    """Flags of one configuration of 100,000 KV tokens and 64 sequences."""
    of = {"tensor_parallel": 2, "pipeline_parallel": 1, "kv_capacity_tokens": 100_000, "max_sequences": 64}
    configuration = ConfigurationInput("k", prefill_seconds_per_token=0.0, decode_seconds_per_token=0.0, **(of | shape))
    planned = PlannedConfiguration(configuration, budget, reservation, 5_000)
    return {flag.name: flag.value for flag in engine_flags(made or fleet(model=MODEL), planned)}


ACTIVE: dict[str, tuple[dict[str, Any], str]] = {
    "the budget over the mean reservation": ({"reservation": 1000.0, "budget": 60_999}, "60"),
    "no more than the engine's ceiling": ({"reservation": 100.0}, "64"),
    "at least one": ({"reservation": 70_000.0}, "1"),
    "the ceiling where nothing is routed": ({"reservation": 0.0}, "64"),
}


@pytest.mark.parametrize(("numbers", "active"), ACTIVE.values(), ids=ACTIVE.keys())
def test_active_sequences_are(numbers: dict[str, Any], active: str) -> None:
    assert flags(**numbers)["max-num-active-seqs"] == active
    assert flags(**numbers)["max-num-seqs"] == "64"


KV_BYTES: dict[str, tuple[dict[str, Any], int]] = {
    "tensor parallel 2": ({"tensor_parallel": 2}, 2 * 64 * 4 * 128 * 2),
    "more ranks than heads replicate a head": ({"tensor_parallel": 16}, 2 * 64 * 1 * 128 * 2),
    "the longest of uneven stages": ({"tensor_parallel": 1, "pipeline_parallel": 3}, 2 * 22 * 8 * 128 * 2),
}


@pytest.mark.parametrize(("shape", "bytes_per_token"), KV_BYTES.values(), ids=KV_BYTES.keys())
def test_kv_bytes_hold_the_capacity_and_the_block_the_engine_keeps(shape: dict[str, Any], bytes_per_token: int) -> None:
    assert flags(**shape)["kv-cache-memory-bytes"] == str((100_000 // 16 + 1) * 16 * bytes_per_token)


def test_without_the_models_sizes_the_engine_gets_its_share_of_memory() -> None:
    unknown = flags(fleet(engine={"gpuMemoryUtilizationMilli": 850}))
    assert unknown["gpu-memory-utilization"] == "0.850"
    assert "kv-cache-memory-bytes" not in unknown


YOUNG = {"max-num-active-seqs", "watermark", "shutdown-timeout", "custom-histogram-buckets", "kv-cache-memory-bytes"}
VERSIONS: dict[str, tuple[dict[str, str], set[str]]] = {
    "unstated": ({}, YOUNG),
    "0.32.0": ({"version": "0.32.0"}, YOUNG),
    "0.33.1+cu130": ({"version": "0.33.1+cu130"}, YOUNG),
    "1.0.0": ({"version": "1.0.0"}, YOUNG),
    "0.31.2": ({"version": "0.31.2"}, YOUNG - {"max-num-active-seqs"}),
    "0.20.0": ({"version": "0.20.0"}, {"shutdown-timeout", "kv-cache-memory-bytes"}),
    "0.9": ({"version": "0.9"}, set()),
}


@pytest.mark.parametrize(("engine", "known"), VERSIONS.values(), ids=VERSIONS.keys())
def test_only_flags_that_the_version_knows_are_written(engine: dict[str, str], known: set[str]) -> None:
    made = flags(fleet(model=MODEL, engine=engine))
    assert YOUNG & set(made) == known
    assert made["max-num-seqs"] == ("64" if "max-num-active-seqs" in known else "60")
    assert ("gpu-memory-utilization" in made) == ("kv-cache-memory-bytes" not in known)


LONGEST: dict[str, tuple[dict[str, Any], str]] = {
    "the classes' longest request": ({}, "5000"),
    "what the fleet says": ({"maxModelLen": 40_960}, "40960"),
    "no more than a group holds": ({"maxModelLen": 131_072}, "100000"),
}


@pytest.mark.parametrize(("model", "length"), LONGEST.values(), ids=LONGEST.keys())
def test_max_model_len_is(model: dict[str, Any], length: str) -> None:
    made = flags(fleet(model=MODEL | model))
    assert made["max-model-len"] == length
    edges = json.loads(made["custom-histogram-buckets"])["request_tokens"]
    assert edges[-1] == int(length)
    assert set(edges[:-1]) <= set(TOKEN_GRID)


def test_flags_are_plain_text_in_order_of_name() -> None:
    made = flags(fleet(model=MODEL | {"kvDtype": "FP8"}))
    assert list(made) == sorted(made)
    assert made["kv-cache-dtype"] == "fp8"
    assert (made["tensor-parallel-size"], made["pipeline-parallel-size"], made["block-size"]) == ("2", "1", "16")
    assert made["shutdown-timeout"] == "600"
