"""Algorithm 1 as printed: it is feasible, never gets worse, and sticks."""

from itertools import pairwise

import numpy as np
import pytest

from kvplan_solver.certificate import certify
from kvplan_solver.errors import EnumerationTooLarge, InvalidInput
from kvplan_solver.instance import Ambiguity, Instance
from kvplan_solver.literal import solve_literal
from kvplan_solver.reference import bracket
from kvplan_solver.result import InfeasibleReason, Options, Result, Status
from tests.builders import a_class, a_configuration, nodes
from tests.property.tiny_instances import random_tiny_instance

SMALL = a_configuration("tp1", max_sequences=1, kv_capacity_tokens=4_000)
FAST = a_configuration(
    "tp2", tensor_parallel=2, decode_seconds_per_token=0.002, max_sequences=1, kv_capacity_tokens=9_000
)


def _two_configurations() -> Instance:
    """One class that needs the fast configuration to be on time."""
    chat = a_class(latency_slo_seconds=0.5, arrival_rate=0.5, latency_weight=500.0)
    return Instance((chat,), (SMALL, FAST), nodes(8), block_tokens=1)


def _solved(instance: Instance, **options: object) -> Result:
    return solve_literal(instance, Options(**options))  # type: ignore[arg-type]


def _falls(result: Result) -> bool:
    objectives = [point.objective for point in result.trace]
    return all(after <= before * (1 + 1e-9) for before, after in pairwise(objectives))


def test_the_trace_starts_with_everything_rejected_and_never_rises() -> None:
    result = _solved(_two_configurations())
    assert result.trace[0].step == "start"
    assert result.trace[0].objective == pytest.approx(0.5 * 5000)
    assert result.trace[-1].objective == pytest.approx(result.objective)
    assert _falls(result)


def test_the_result_has_no_bound_but_passes_the_certificate() -> None:
    instance = _two_configurations()
    result = _solved(instance)
    assert result.status is Status.FEASIBLE
    assert result.lower_bound == -np.inf
    assert certify(instance, result).holds


@pytest.mark.parametrize("seed", [n for n in range(60) if n % 10 != 9])
def test_on_tiny_instances_it_is_feasible_and_never_rises(seed: int) -> None:
    instance = random_tiny_instance(seed)
    result = _solved(instance)
    if result.status is Status.INFEASIBLE:
        assert instance.min_gpus > 0
        return
    assert _falls(result)
    certificate = certify(instance, result)
    assert certificate.holds, certificate.violations


def test_it_never_opens_a_configuration_that_the_start_left_closed() -> None:
    instance = _two_configurations()
    stuck = _solved(instance, initial_groups=(8, 0))
    free = _solved(instance, initial_groups=(0, 4))
    assert stuck.groups[1] == 0
    assert stuck.work["iterations"] <= 2
    assert free.objective < 0.8 * stuck.objective


def test_it_stays_with_everything_rejected_when_nothing_is_deployed() -> None:
    instance = _two_configurations()
    result = _solved(instance, initial_groups=(0, 0))
    assert result.rejected.tolist() == [1.0]
    assert result.work["iterations"] == 1
    assert result.objective > 10 * bracket(_coarse(instance)).upper


def _coarse(instance: Instance) -> Instance:
    """Large blocks and few GPUs, so that the reference can enumerate it."""
    return Instance(instance.classes, instance.configurations, nodes(4), block_tokens=64)


def test_it_stops_short_of_the_optimum_on_many_tiny_instances() -> None:
    worse = 0
    for seed in (4, 12, 15, 22, 25, 28, 42, 53):
        instance = random_tiny_instance(seed)
        worse += _solved(instance).objective > 1.01 * bracket(instance, width=5e-3).upper
    assert worse >= 3


def test_the_start_is_checked() -> None:
    with pytest.raises(InvalidInput, match="initial_groups"):
        _solved(_two_configurations(), initial_groups=(9, 0))
    with pytest.raises(InvalidInput, match="one count for each of 2 configurations"):
        _solved(_two_configurations(), initial_groups=(1,))


def test_another_ambiguity_set_is_refused_with_a_remedy() -> None:
    instance = Instance((a_class(),), (SMALL,), nodes(2), ambiguity=Ambiguity.SCALE)
    with pytest.raises(InvalidInput, match="certified method"):
        _solved(instance)


def test_a_space_too_large_to_enumerate_is_refused_with_its_size() -> None:
    many = tuple(a_configuration(f"v{n}") for n in range(12))
    with pytest.raises(EnumerationTooLarge, match=r"1,251,677,700 partitions of 24 GPUs over 12"):
        _solved(Instance((a_class(),), many, nodes(8, 8, 8)))


def test_a_floor_on_gpus_above_the_budget_is_infeasible() -> None:
    result = _solved(Instance((a_class(),), (SMALL,), nodes(2), min_gpus=3))
    assert result.status is Status.INFEASIBLE
    assert result.infeasible_reason is InfeasibleReason.MIN_GPUS_ABOVE_BUDGET


def test_a_floor_that_no_partition_reaches_is_infeasible() -> None:
    result = _solved(Instance((a_class(),), (FAST,), nodes(1, 1), min_gpus=1))
    assert result.infeasible_reason is InfeasibleReason.MIN_GPUS_DO_NOT_FIT


def test_no_traffic_and_no_gpus_are_plans_too() -> None:
    assert _solved(Instance((a_class(arrival_rate=0.0),), (SMALL,), nodes(2))).objective == 0
    assert _solved(Instance((a_class(),), (SMALL,), nodes(0))).rejected.tolist() == [1.0]


def test_reservations_are_whole_blocks() -> None:
    instance = Instance((a_class(),), (a_configuration(),), nodes(4), block_tokens=16)
    result = _solved(instance)
    assert [tokens % 16 for tokens in result.reservation_tokens] == [0]
    assert certify(instance, result).holds


def test_the_same_instance_gives_the_same_bytes() -> None:
    first, second = _solved(random_tiny_instance(1)), _solved(random_tiny_instance(1))
    assert first.routing.tobytes() == second.routing.tobytes()
    assert first.trace == second.trace


def test_the_deadline_stops_it_with_a_feasible_plan() -> None:
    ticks = iter(range(10_000))
    result = _solved(_two_configurations(), clock=lambda: float(next(ticks)), deadline_seconds=2.0)
    assert result.deadline_hit
    assert certify(_two_configurations(), result).holds
