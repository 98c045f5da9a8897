"""Speed curves: interpolation, clamping, monotonicity, refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ConfigurationInput
from kvplan_solver.speed_curve import SpeedCurve, Speeds, at_batch, constant_curve


def test_a_curve_is_linear_between_grid_points_and_constant_beyond_them() -> None:
    curve = SpeedCurve.of([2, 6], [1.0, 3.0], [10.0, 20.0], [0.5, 0.5])
    assert curve.at(4) == Speeds(2.0, 15.0, 0.5)
    assert curve.at(1) == Speeds(1.0, 10.0, 0.5)
    assert curve.at(100) == Speeds(3.0, 20.0, 0.5)


def test_a_dip_is_averaged_with_its_neighbours() -> None:
    curve = SpeedCurve.of([1, 2, 3, 4], [1.0, 4.0, 2.0, 5.0], [1.0] * 4)
    assert curve.prefill_seconds_per_token.tolist() == [1.0, 3.0, 3.0, 5.0]


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=12))
def test_columns_never_fall_and_keep_their_mean(column: list[float]) -> None:
    grid = np.arange(1.0, len(column) + 1)
    rising = SpeedCurve.of(grid, column, column).decode_seconds_per_token
    assert np.all(np.diff(rising) >= -1e-12 * (1 + rising.max()))
    assert rising.mean() == pytest.approx(np.mean(column), rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=12))
def test_a_column_that_rises_already_is_kept_as_it_is(column: list[float]) -> None:
    rising = sorted(column)
    curve = SpeedCurve.of(np.arange(1.0, len(rising) + 1), rising, rising)
    assert curve.prefill_seconds_per_token.tolist() == rising


def test_a_constant_curve_ignores_the_batch() -> None:
    curve = constant_curve(Speeds(1e-4, 2e-2, 0.1))
    assert curve.at(1) == curve.at(256) == Speeds(1e-4, 2e-2, 0.1)


def test_a_configuration_at_a_batch_changes_nothing_but_its_speeds() -> None:
    before = ConfigurationInput("tp2", 2, 1, 10_000, 1.0, 1.0, max_sequences=8, gpu_product="NVIDIA-H200")
    after = at_batch(before, SpeedCurve.of([1, 3], [1e-4, 3e-4], [1e-2, 3e-2]), 2)
    assert (after.prefill_seconds_per_token, after.decode_seconds_per_token) == pytest.approx((2e-4, 2e-2))
    kept = ("name", "tensor_parallel", "kv_capacity_tokens", "max_sequences", "gpu_product")
    assert all(getattr(after, name) == getattr(before, name) for name in kept)


REFUSED: dict[str, tuple[Any, ...]] = {
    "an empty batch grid": ([], [], []),
    "a batch below 1": ([0.5, 2], [1, 1], [1, 1]),
    "a batch that does not ascend": ([2, 2], [1, 1], [1, 1]),
    "a batch that is not finite": ([1, float("inf")], [1, 1], [1, 1]),
    "a column of another length": ([1, 2], [1], [1, 1]),
    "a NaN": ([1, 2], [1, float("nan")], [1, 1]),
    "a negative speed": ([1, 2], [1, 1], [-1, 1]),
    "a negative overhead": ([1, 2], [1, 1], [1, 1], [0, -1]),
}


@pytest.mark.parametrize("columns", REFUSED.values(), ids=REFUSED.keys())
def test_a_curve_refuses(columns: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput, match="speed curve"):
        SpeedCurve.of(*columns)
