"""Instances that once broke the certified method: each keeps the kind of fault it showed from coming back."""

import dataclasses

import pytest

from kvplan_solver.certificate import Check, certify
from kvplan_solver.certified.method import solve_certified
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import GroupPlacement, Instance, NodeInput
from kvplan_solver.result import Options, Result, Status
from tests.builders import a_class, a_configuration, nodes

FAST = a_configuration("fast", tensor_parallel=2, decode_seconds_per_token=0.006)


def _certified(instance: Instance, **options: object) -> Result:
    result = solve_certified(instance, Options(**options))  # type: ignore[arg-type]
    assert certify(instance, result).holds, certify(instance, result).violations
    return result


def _hurried(**changes: object) -> Instance:
    classes = tuple(
        a_class(name, arrival_rate=rate, latency_slo_seconds=1.0, **changes)  # type: ignore[arg-type]
        for name, rate in (("a", 3.0), ("b", 7.0))
    )
    return Instance(classes, (a_configuration("slow"), FAST), nodes(8))


@pytest.mark.parametrize("weight", [5e3, 1e5, 1e7, 1e9])
def test_a_huge_rejection_weight_changes_no_plan_and_no_bound(weight: float) -> None:
    plain, huge = _certified(_hurried()), _certified(_hurried(rejection_weight=weight))
    assert huge.groups == plain.groups
    assert huge.objective == pytest.approx(plain.objective, rel=1e-6)
    assert huge.lower_bound == pytest.approx(plain.lower_bound, rel=2e-3)
    assert huge.status is Status.OPTIMAL


@pytest.mark.parametrize("scale", [1e-8, 1e-5, 1e-2, 1e4])
def test_costs_of_any_scale_give_the_same_plan(scale: float) -> None:
    costs = {"preemption_cost": 10.0, "waste_cost": 1.0, "latency_weight": 5.0, "rejection_weight": 5000.0}
    plain = _certified(_hurried(), gap_target=0.0)
    scaled = _certified(_hurried(**{k: v * scale for k, v in costs.items()}), gap_target=0.0)
    assert scaled.objective == pytest.approx(plain.objective * scale, rel=1e-5)
    assert scaled.gap <= 2e-3


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 1.0])
def test_light_traffic_still_gets_a_group(rate: float) -> None:
    instance = Instance((a_class(arrival_rate=rate),), (a_configuration(), FAST), nodes(4), idle_gpu_second_cost=1e-9)
    result = _certified(instance)
    assert sum(result.groups) == 1
    assert result.gap <= 2e-3


def test_service_that_takes_no_time_is_not_overlooked() -> None:
    instant = a_configuration("instant", service_seconds={"chat": 0.0})
    result = _certified(Instance((a_class(),), (instant,), nodes(1)))
    assert result.groups == (1,)
    assert result.rejected.tolist() == [0.0]


def test_a_huge_weight_on_demand_that_cannot_be_served_is_counted_in_full() -> None:
    result = _certified(Instance((a_class(arrival_rate=100.0, rejection_weight=1e9),), (a_configuration(),), nodes(2)))
    assert 0 < result.rejected[0] < 1
    assert result.costs.rejection == pytest.approx(100 * 1e9 * result.rejected[0])
    assert result.gap <= 0.02


def test_a_floor_on_gpus_is_met_where_sizes_do_not_divide() -> None:
    kinds = (a_configuration("three", tensor_parallel=3), a_configuration("two", tensor_parallel=2))
    result = _certified(Instance((a_class(),), kinds, nodes(4, 4), min_gpus=8))
    assert result.groups == (0, 4)


@pytest.mark.parametrize(
    ("why", "placement"),
    [
        ("spans nodes but no longer may", GroupPlacement("pipe", ("n0", "n1"))),
        ("has a stage too many", GroupPlacement("pipe", ("n0", "n0", "n0"))),
        ("has no stage", GroupPlacement("pipe", ())),
        ("runs on the wrong product", GroupPlacement("pipe", ("other", "other"))),
        ("runs on a node that is gone", GroupPlacement("pipe", ("gone", "gone"))),
    ],
)
def test_a_running_group_that_no_longer_fits_its_configuration_is_not_kept(why: str, placement: GroupPlacement) -> None:
    pipe = a_configuration("pipe", pipeline_parallel=2, gpu_product="A")
    fleet = (NodeInput("n0", 2, "A"), NodeInput("n1", 2, "A"), NodeInput("other", 2, "B"))
    result = _certified(Instance((a_class(),), (pipe,), fleet, running=(placement,)))
    assert placement not in result.placements, why


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gap_target", -0.1), ("gap_target", float("nan")), ("effort", 0), ("effort", 1.5), ("effort", 10**9),
        ("deadline_seconds", 0.0), ("deadline_seconds", float("nan")),
    ],
)  # fmt: skip
def test_a_senseless_option_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Options(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize("groups", [(), (1,), (float("nan"), 1.0), (-3, 1), (10**6, 0)])
def test_a_warm_start_of_the_wrong_shape_is_ignored(groups: tuple[float, ...]) -> None:
    instance = _hurried()
    cold = _certified(instance)
    warm = dataclasses.replace(cold, groups=groups)  # type: ignore[arg-type]
    assert _certified(instance, warm_start=warm).objective == pytest.approx(cold.objective, rel=1e-6)


def test_a_prefix_longer_than_the_prompt_that_is_reserved_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        a_class(input_tokens_mean=1000.0, input_tokens_p95=10, input_tokens_max=2000, shared_prefix_tokens=1000)
    assert caught.value.field == "shared_prefix_tokens"


@pytest.mark.parametrize("value", [1e10, 10**30, 1e300])
def test_a_number_beyond_all_reason_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match="at most"):
        a_class(arrival_rate=value)


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.ERROR])
def test_a_result_without_a_plan_is_never_certified(status: Status) -> None:
    instance = _hurried()
    result = dataclasses.replace(_certified(instance), status=status)
    assert {v.check for v in certify(instance, result).violations} == {Check.STATUS}


def test_arrays_of_the_wrong_kind_are_no_result() -> None:
    instance = _hurried()
    result = _certified(instance)
    for wrong in (
        {"cached": result.cached.astype(float)},
        {"routing": result.routing.tolist()},
        {"groups": ("a", "b")},
    ):
        changed = dataclasses.replace(result, **wrong)
        assert Check.SHAPE in {v.check for v in certify(instance, changed).violations}
