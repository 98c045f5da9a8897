"""The certified method on instances whose answer can be reasoned out."""

import dataclasses

import numpy as np
import pytest

from kvplan_solver.certificate import certify
from kvplan_solver.certified.method import solve_certified
from kvplan_solver.instance import Instance
from kvplan_solver.result import BindingKind, InfeasibleReason, Options, Result, Status
from tests.builders import a_class, a_configuration, nodes


def _solved(instance: Instance, **options: object) -> Result:
    result = solve_certified(instance, Options(**options))  # type: ignore[arg-type]
    certificate = certify(instance, result, gap_target=Options().gap_target)
    assert certificate.holds, certificate.violations
    return result


def test_one_class_and_one_configuration_need_one_group() -> None:
    result = _solved(Instance((a_class(),), (a_configuration(),), nodes(8)))
    assert result.status is Status.OPTIMAL
    assert result.groups == (1,)  # fewest GPUs win a tie
    assert result.routing.tolist() == [[1.0]]


def test_nothing_arrives_so_nothing_runs() -> None:
    result = _solved(Instance((a_class(arrival_rate=0.0),), (a_configuration(),), nodes(8)))
    assert result.groups == (0,)
    assert result.objective == 0
    assert result.status is Status.OPTIMAL


def test_without_gpus_everything_is_rejected_and_the_remedy_is_named() -> None:
    result = _solved(Instance((a_class(),), (a_configuration(),), nodes(0)))
    assert result.rejected.tolist() == [1.0]
    assert result.rejections[0].class_name == "chat"
    assert "add nodes" in result.rejections[0].remedy


def test_demand_far_beyond_capacity_is_rejected_in_part() -> None:
    result = _solved(Instance((a_class(arrival_rate=100.0),), (a_configuration(),), nodes(2)))
    assert result.groups == (2,)
    assert 0 < result.rejected[0] < 1
    assert "GPUs" in result.rejections[0].remedy
    assert BindingKind.REJECTION in {b.kind for b in result.binding}


def test_a_request_longer_than_every_group_is_rejected_with_the_reason() -> None:
    small = a_configuration(kv_capacity_tokens=700)
    result = _solved(Instance((a_class(),), (small,), nodes(8)))
    assert result.rejected.tolist() == [1.0]
    assert "768 tokens" in result.rejections[0].why


def test_a_rejection_cheaper_than_service_is_chosen_and_said() -> None:
    result = _solved(Instance((a_class(rejection_weight=1.0),), (a_configuration(),), nodes(8)))
    assert result.rejected.tolist() == [1.0]
    assert "rejectionWeight" in result.rejections[0].remedy


def test_a_tight_objective_buys_faster_groups() -> None:
    slow = a_configuration("tp1")
    fast = a_configuration("tp4", tensor_parallel=4, decode_seconds_per_token=0.003)
    relaxed = _solved(Instance((a_class(latency_slo_seconds=30.0),), (slow, fast), nodes(8)))
    hurried = _solved(Instance((a_class(latency_slo_seconds=0.7),), (slow, fast), nodes(8)))
    assert relaxed.groups == (1, 0)
    assert hurried.groups[1] > 0
    assert hurried.slo_excess_seconds == (0.0,)


def test_the_reservation_shrinks_when_memory_binds_and_rejection_is_dearer() -> None:
    roomy = _solved(Instance((a_class(arrival_rate=8.0),), (a_configuration(),), nodes(1)))
    tight = _solved(Instance((a_class(arrival_rate=8.0),), (a_configuration(kv_capacity_tokens=4_000),), nodes(1)))
    assert tight.reservation_tokens[0] < roomy.reservation_tokens[0]
    assert BindingKind.MEMORY in {b.kind for b in tight.binding}
    assert tight.rejected[0] < 0.5


def test_a_shared_prefix_is_cached_where_it_saves_memory() -> None:
    shared = a_class(arrival_rate=8.0, shared_prefix_tokens=96)
    result = _solved(Instance((shared,), (a_configuration(kv_capacity_tokens=4_000),), nodes(1)))
    assert result.cached.tolist() == [[True]]


def test_a_floor_on_gpus_is_kept() -> None:
    result = _solved(Instance((a_class(),), (a_configuration(),), nodes(8), min_gpus=5))
    assert result.groups == (5,)


@pytest.mark.parametrize(
    ("why", "minimum", "tensor_parallel", "reason"),
    [
        ("more than there are", 9, 1, InfeasibleReason.MIN_GPUS_ABOVE_BUDGET),
        ("a count no group makes", 3, 2, InfeasibleReason.MIN_GPUS_DO_NOT_FIT),
    ],
)
def test_an_impossible_floor_is_infeasible(
    why: str, minimum: int, tensor_parallel: int, reason: InfeasibleReason
) -> None:
    configuration = a_configuration(tensor_parallel=tensor_parallel)
    free = 8 if minimum > 8 else 3
    result = solve_certified(Instance((a_class(),), (configuration,), nodes(free), min_gpus=minimum), Options())
    assert result.status is Status.INFEASIBLE, why
    assert result.infeasible_reason is reason
    assert "min_gpus" in result.message


def test_switching_has_its_price() -> None:
    slow = a_configuration("tp1")
    fast = a_configuration("tp2", tensor_parallel=2, decode_seconds_per_token=0.006)
    from kvplan_solver.instance import GroupPlacement

    running = (GroupPlacement("tp2", ("n0",)),)
    instance = Instance((a_class(),), (slow, fast), nodes(8), running=running)
    assert _solved(instance).groups == (1, 0)
    assert _solved(dataclasses.replace(instance, switching_cost=50.0)).groups == (0, 1)


def test_every_incumbent_is_feasible_and_better_than_the_last() -> None:
    incumbents: list[Result] = []
    instance = Instance(
        tuple(a_class(f"c{i}", arrival_rate=1.0 + i, latency_slo_seconds=1.2) for i in range(4)),
        (a_configuration("tp1"), a_configuration("tp2", tensor_parallel=2, decode_seconds_per_token=0.006)),
        nodes(4, 4),
    )
    solve_certified(instance, Options(on_incumbent=incumbents.append))
    assert incumbents
    assert all(certify(instance, result).holds for result in incumbents)
    objectives = [result.objective for result in incumbents]
    assert objectives == sorted(objectives, reverse=True)


def test_a_deadline_that_has_passed_still_gives_a_feasible_result_and_says_so() -> None:
    instance = Instance(
        tuple(a_class(f"c{i}", latency_slo_seconds=0.8) for i in range(3)),
        tuple(a_configuration(f"tp{t}", tensor_parallel=t) for t in (1, 2, 4)),
        nodes(8),
    )
    ticks = iter(range(1_000_000))
    result = solve_certified(instance, Options(clock=lambda: float(next(ticks)), deadline_seconds=1.0))
    assert result.deadline_hit
    assert certify(instance, result).holds


def test_the_seconds_are_absent_without_a_clock() -> None:
    result = _solved(Instance((a_class(),), (a_configuration(),), nodes(8)))
    assert result.seconds == {}
    assert all(point.seconds is None for point in result.trace)


def test_a_warm_start_is_used_and_never_harms() -> None:
    instance = Instance(
        (a_class(arrival_rate=20.0),),
        (a_configuration("tp1"), a_configuration("tp2", tensor_parallel=2, decode_seconds_per_token=0.006)),
        nodes(8),
    )
    cold = _solved(instance)
    warm = _solved(instance, warm_start=cold)
    assert warm.objective <= cold.objective * (1 + 1e-9)


def test_gpu_price_is_positive_only_when_gpus_are_scarce() -> None:
    scarce = _solved(Instance((a_class(arrival_rate=100.0),), (a_configuration(),), nodes(2)))
    ample = _solved(Instance((a_class(),), (a_configuration(),), nodes(8)))
    assert scarce.gpu_price > 0
    assert ample.gpu_price == pytest.approx(0.0)


def test_identical_configurations_are_broken_the_same_way_each_time() -> None:
    twins = (a_configuration("a"), a_configuration("b"))
    results = [_solved(Instance((a_class(),), twins, nodes(4))) for _ in range(2)]
    assert results[0].groups == results[1].groups
    assert np.array_equal(results[0].routing, results[1].routing)
