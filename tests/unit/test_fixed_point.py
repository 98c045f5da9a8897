"""Batch and plan agree: closed-form dynamics, oscillation, unused configurations, refusals."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan_solver.batch import implied_batch, settled_batch
from kvplan_solver.errors import InvalidInput
from kvplan_solver.fixed_point import FixedPointOptions, solve_with_batch
from kvplan_solver.instance import ClassInput, ConfigurationInput, Instance, NodeInput
from kvplan_solver.result import CostParts, Method, Result, Status
from kvplan_solver.service_time import service_matrix
from kvplan_solver.speed_curve import SpeedCurve

PROMPT, OUTPUT = 1000.0, 200.0
FLAT = SpeedCurve.of([1.0], [1e-4], [0.02])
STEEP = SpeedCurve.of([1.0, 256.0], [1e-4, 1e-4], [0.01, 0.01 + 255 * 5e-4])


def configuration(name: str, max_sequences: int = 256) -> ConfigurationInput:
    return ConfigurationInput(name, 1, 1, 1_000_000, 1e-4, 0.02, max_sequences=max_sequences)


def instance(rate: float, *configurations: ConfigurationInput) -> Instance:
    chat = ClassInput("chat", rate, PROMPT, 1200, 2000, 0, 400, np.array([OUTPUT]), 10.0)
    return Instance((chat,), configurations, (NodeInput("a", 8),))


def plan(groups: tuple[int, ...], shares: tuple[float, ...]) -> Result:
    return Result(
        Method.CERTIFIED, Status.OPTIMAL, groups, (), (400,), np.array([shares]),
        np.zeros((1, len(groups)), dtype=bool), (0.0,), CostParts(0.0, 0.0, 0.0, 0.0), 0.0,
    )  # fmt: skip


def always(groups: tuple[int, ...], shares: tuple[float, ...]) -> Callable[[Instance], Result]:
    return lambda _: plan(groups, shares)


def fastest(problem: Instance) -> Result:
    """One group of the configuration with the shortest service time at the frozen speeds."""
    best = int(np.argmin(service_matrix(problem)[0]))
    chosen = [int(column == best) for column in range(len(problem.configurations))]
    return plan(tuple(chosen), tuple(map(float, chosen)))


def test_a_fixed_plan_settles_at_the_closed_form_batch() -> None:
    rate = 6.0
    intercept, slope = 1e-4 * PROMPT + OUTPUT * (0.01 - 5e-4), OUTPUT * 5e-4
    expected = rate * intercept / (1 - rate * slope)
    result, frozen, report = solve_with_batch(instance(rate, configuration("k")), {"k": STEEP}, always((1,), (1.0,)))
    assert report.converged
    assert report.passes == 2
    assert report.points[0].frozen == pytest.approx(expected, rel=1e-9)
    assert report.residual == pytest.approx(0.0, abs=1e-9)
    assert implied_batch(frozen, result)[0] == pytest.approx(expected, rel=1e-9)


def test_the_plan_moves_away_from_a_configuration_that_only_looked_fast_at_the_assumed_batch() -> None:
    result, frozen, report = solve_with_batch(
        instance(8.0, configuration("steep"), configuration("flat")), {"steep": STEEP, "flat": FLAT}, fastest
    )
    assert result.groups == (0, 1)
    assert report.converged
    assert not any(point.assumed for point in report.points), "both ran in some pass"
    assert frozen.configurations[1].decode_seconds_per_token == 0.02


def test_a_plan_that_never_settles_ends_after_five_passes_with_its_best_pass() -> None:
    seen: list[tuple[Instance, Result]] = []
    loads = cycle([((1,), (1.0,)), ((4,), (1.0,))])

    def restless(problem: Instance) -> Result:
        seen.append((problem, plan(*next(loads))))
        return seen[-1][1]

    result, frozen, report = solve_with_batch(instance(6.0, configuration("k")), {"k": STEEP}, restless)
    assert report.passes == len(seen) == 5
    assert not report.converged
    assert report.residual == min(report.residuals) > report.options.tolerance
    best = report.residuals.index(report.residual)
    assert (frozen, result) == seen[best], "result and instance belong to the same pass"


def test_later_passes_go_half_the_way() -> None:
    frozen_at: list[float] = []
    loads = cycle([((1,), (1.0,)), ((2,), (1.0,)), ((1,), (1.0,))])

    def recorded(problem: Instance) -> Result:
        decode = problem.configurations[0].decode_seconds_per_token
        frozen_at.append(1 + (decode - 0.01) / 5e-4)
        return plan(*next(loads))

    problem = instance(6.0, configuration("k"))
    solve_with_batch(problem, {"k": STEEP}, recorded, FixedPointOptions(max_passes=3))
    one, two = (settled_batch(problem, plan((z,), (1.0,)), 0, STEEP) for z in (1, 2))
    assert frozen_at == pytest.approx([16.0, one, (one + two) / 2])


def test_a_configuration_without_groups_keeps_the_assumed_batch_and_says_so() -> None:
    problem = instance(2.0, configuration("used"), configuration("idle"), configuration("small", 4))
    curves = {"used": STEEP, "idle": STEEP, "small": STEEP}
    options = FixedPointOptions(assumed_batch=10)
    _, _, report = solve_with_batch(problem, curves, always((1, 0, 0), (1.0, 0.0, 0.0)), options)
    used, idle, small = report.points
    assert not used.assumed
    assert (idle.assumed, idle.frozen, idle.implied) == (True, 10.0, 10.0)
    assert (small.assumed, small.frozen) == (True, 4.0), "capped at S_k"


def test_a_configuration_without_a_curve_keeps_its_speeds() -> None:
    measured = replace(configuration("measured"), decode_seconds_per_token=0.123)
    problem = instance(2.0, measured)
    _, frozen, report = solve_with_batch(problem, {}, always((1,), (1.0,)))
    assert frozen.configurations == problem.configurations
    assert report.passes == 1
    assert report.points == ()


def test_a_load_that_outgrows_every_batch_settles_at_max_sequences() -> None:
    problem = instance(50.0, configuration("k", 32))
    assert settled_batch(problem, plan((1,), (1.0,)), 0, STEEP) == 32.0
    assert implied_batch(problem, plan((1,), (1.0,)))[0] == 32.0


def test_a_measured_service_time_does_not_grow_with_the_batch() -> None:
    measured = replace(configuration("k"), service_seconds={"chat": 2.5})
    assert settled_batch(instance(4.0, measured), plan((1,), (1.0,)), 0, STEEP) == pytest.approx(10.0)


def test_a_plan_without_traffic_settles_at_one_sequence() -> None:
    result, _, report = solve_with_batch(instance(0.0, configuration("k")), {"k": STEEP}, always((1,), (1.0,)))
    assert result.groups == (1,)
    assert report.converged
    assert report.points[0].frozen == 1.0


@given(rate=st.floats(0.01, 30), steps=st.lists(st.floats(0, 0.05), min_size=2, max_size=6))
def test_the_settled_batch_is_the_least_that_sustains_itself(rate: float, steps: list[float]) -> None:
    curve = SpeedCurve.of([2.0**n for n in range(len(steps))], [1e-4] * len(steps), np.cumsum(steps))
    problem, result = instance(rate, configuration("k", 64)), plan((1,), (1.0,))

    def in_flight(batch: float) -> float:
        return rate * (1e-4 * PROMPT + OUTPUT * curve.at(batch).decode_seconds_per_token)

    settled = settled_batch(problem, result, 0, curve)
    if 1 < settled < 64:
        assert in_flight(settled) == pytest.approx(settled, rel=1e-6)
    smaller = np.linspace(1, settled, 50)[:-1] if settled > 1 else np.array([])
    assert all(in_flight(batch) > batch * (1 - 1e-9) for batch in smaller)


def test_the_order_of_the_curves_does_not_matter() -> None:
    problem = instance(8.0, configuration("steep"), configuration("flat"))
    forward = solve_with_batch(problem, {"steep": STEEP, "flat": FLAT}, fastest)
    backward = solve_with_batch(problem, {"flat": FLAT, "steep": STEEP}, fastest)
    assert repr(forward[2]) == repr(backward[2])
    assert repr(forward[1].configurations) == repr(backward[1].configurations)


def test_a_curve_for_an_unknown_configuration_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"configuration is 'other': use one of k"):
        solve_with_batch(instance(1.0, configuration("k")), {"other": FLAT}, fastest)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_passes", 0), ("damping", 0.0), ("damping", 1.5), ("tolerance", 0.0), ("assumed_batch", 0.5)],
)
def test_options_out_of_range_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=name):
        replace(FixedPointOptions(), **{name: value})
