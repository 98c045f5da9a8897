"""Batch and plan agree: by the damped fixed point, else by the ladder of batches."""

from dataclasses import replace

import numpy as np
import pytest

from kvplan_operator.plan.agreement import MAX_SOLVES, Agreed, agree, priced
from kvplan_solver.batch import implied_batch
from kvplan_solver.certificate import certify
from kvplan_solver.instance import Instance
from kvplan_solver.packing import place
from kvplan_solver.result import Options, Result, Status
from kvplan_solver.solve import solve
from kvplan_solver.speed_curve import SpeedCurve
from tests.planning import configuration, fleet, inputs, request_class

STEEP = {
    name: SpeedCurve.of([1.0, 64.0], [1e-4 / gpus, 64e-4 / gpus], [0.01 / gpus, 0.08 / gpus])
    for gpus, name in ((1, "tp1"), (2, "tp2"))
}
"""Sixty-four together are sixty-four times slower at the prompt and eight times at the output."""
TARGET = 0.005


class Counted:
    """The solver, counting."""

    def __init__(self) -> None:
        self.instances: list[Instance] = []

    def __call__(self, instance: Instance) -> Result:
        self.instances.append(instance)
        return solve(instance, Options(gap_target=TARGET))


def instance(rate_milli: int = 6_000) -> Instance:
    """Two classes on groups of up to 64 sequences."""
    wide = fleet(configurations=[configuration("tp1", 1, maxSequences=64), configuration("tp2", 2, maxSequences=64)])
    classes = tuple(request_class(n, arrivals={"requestsPerSecondMilli": rate_milli}) for n in ("chat", "code"))
    return inputs(fleet=wide, classes=classes).problem().instance


def swinging() -> Agreed:
    """An instance where the damped fixed point does not agree."""
    return agree(instance(), STEEP, Counted(), TARGET)


def test_speeds_that_do_not_depend_on_the_batch_need_one_solve() -> None:
    counted = Counted()
    agreed = agree(instance(), {}, counted, TARGET)
    assert len(counted.instances) == agreed.report.passes == 1
    assert agreed.report.converged


def test_the_ladder_ends_in_agreement_where_the_damped_fixed_point_swings() -> None:
    counted = Counted()
    agreed = agree(instance(), STEEP, counted, TARGET)
    assert len(counted.instances) == agreed.report.passes == MAX_SOLVES
    assert agreed.report.converged
    implied = implied_batch(agreed.instance, agreed.result)
    for point in agreed.report.points:
        column = [k.name for k in agreed.instance.configurations].index(point.configuration)
        if agreed.result.groups[column]:
            assert implied[column] == pytest.approx(point.frozen, rel=0.05)


def test_what_the_ladder_returns_passes_the_certificate_with_its_bound() -> None:
    agreed = swinging()
    assert certify(agreed.instance, agreed.result, gap_target=TARGET).holds
    assert np.isfinite(agreed.result.lower_bound)
    assert agreed.result.status in (Status.OPTIMAL, Status.FEASIBLE)


def test_speeds_are_those_of_the_full_batch_on_no_rung_beyond_it() -> None:
    counted = Counted()
    agree(instance(), STEEP, counted, TARGET)
    rungs = counted.instances[-5:-1]
    assert [k.max_sequences for rung in rungs for k in rung.configurations[:1]] == [64, 32, 16, 8]


def test_no_group_is_left_that_saves_nothing() -> None:
    agreed = swinging()
    result = agreed.result
    for column, z in enumerate(result.groups):
        carries = bool(result.routing[:, column].any())
        if z <= int(carries):
            continue
        groups = tuple(n - (k == column) for k, n in enumerate(result.groups))
        fewer = replace(result, groups=groups, placements=place(agreed.instance, groups) or ())
        there = priced(agreed.instance, fewer)
        dearer = there.objective > result.objective * (1 + 1e-9)
        assert dearer or not certify(agreed.instance, there).holds


def test_groups_that_nobody_runs_are_assumed_as_loaded_as_the_busiest() -> None:
    agreed = swinging()
    frozen = {point.configuration: point for point in agreed.report.points}
    columns = list(zip(agreed.instance.configurations, agreed.result.groups, strict=True))
    level = max(frozen[k.name].frozen / k.max_sequences for k, z in columns if z)
    for k, z in columns:
        if not z:
            assert frozen[k.name].assumed
            assert frozen[k.name].frozen == pytest.approx(max(1.0, level * k.max_sequences))


def test_a_floor_that_cannot_be_met_comes_back_as_the_solver_said_it() -> None:
    impossible = replace(instance(), min_gpus=99)
    assert agree(impossible, STEEP, Counted(), TARGET).result.status is Status.INFEASIBLE


def test_more_demand_than_any_batch_can_serve_is_rejected_in_part_and_certified() -> None:
    agreed = agree(instance(400_000), STEEP, Counted(), TARGET)
    assert agreed.result.rejected.max() > 0.5
    assert certify(agreed.instance, agreed.result).holds
