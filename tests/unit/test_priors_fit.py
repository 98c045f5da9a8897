"""The linear fit: exact where the model is exact, honest where it is not."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kvplan_operator.model.priors.fit import (
    curve_error,
    fit_curve,
    fit_linear,
    frozen_error,
    plan_fit,
    reachable,
)
from kvplan_operator.model.priors.profile import Profile, ProfileKey, bundled_snapshot
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats
from kvplan_solver.speed_curve import Speeds

BATCH = np.array([1.0, 2.0, 4.0, 8.0])
LENGTHS = np.array(list(product((500.0, 2000.0, 8000.0), (100.0, 500.0, 2000.0))))


def profile(first_token: Floats, token: Floats, capacity: int = 10_000_000) -> Profile:
    key = ProfileKey("acme/own", "h200_sxm", 1)
    return Profile(key, capacity, BATCH, LENGTHS[:, 0], LENGTHS[:, 1], first_token, token)


def linear_profile(prefill: Floats, decode: Floats, overhead: float) -> Profile:
    """T = prefill·Lin + decode·ξ + overhead exactly, at every batch."""
    token = np.broadcast_to(decode, (len(LENGTHS), len(BATCH)))
    return profile(LENGTHS[:, :1] * prefill + overhead + decode, token)


def test_exactly_linear_latencies_are_recovered_without_error() -> None:
    prefill, decode = 1e-4 * BATCH, 0.01 + 1e-3 * BATCH
    fitted = linear_profile(prefill, decode, 0.05)
    curve = fit_curve(fitted)
    assert curve.prefill_seconds_per_token == pytest.approx(prefill)
    assert curve.decode_seconds_per_token == pytest.approx(decode)
    assert curve.overhead_seconds == pytest.approx(0.05)
    assert curve_error(fitted, curve, 1, 8).worst < 1e-9


def test_no_coefficient_is_negative_even_where_least_squares_wants_one() -> None:
    falling = profile(np.full((9, 4), 0.5) - 5e-5 * LENGTHS[:, :1], np.full((9, 4), 0.01))
    speeds = fit_linear(falling, 1, 1).speeds
    assert speeds.prefill_seconds_per_token == 0.0
    assert speeds.decode_seconds_per_token > 0


def test_the_worst_point_is_named() -> None:
    exact = linear_profile(np.full(4, 1e-4), np.full(4, 0.01), 0.0)
    bumped = np.array(exact.first_token_seconds)
    bumped[5, 2] *= 50
    error = frozen_error(profile(bumped, exact.token_seconds), Speeds(1e-4, 0.01), 1, 8)
    assert (error.worst_batch, error.worst_input_tokens, error.worst_output_tokens) == (4, 2000, 2000)
    assert 0 < error.mean < error.worst < 1


def test_a_range_covers_the_grid_batches_around_it() -> None:
    growing = linear_profile(1e-4 * BATCH, np.full(4, 0.01), 0.0)
    at_three = frozen_error(growing, Speeds(2e-4, 0.01), 3, 3)
    assert at_three.worst_batch == 4, "2 is exact, 4 is not"
    assert frozen_error(growing, Speeds(2e-4, 0.01), 2, 2).worst < 1e-9


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="batch_low"):
        fit_linear(linear_profile(BATCH, BATCH, 0.0), 8, 2)


def test_points_beyond_memory_or_beyond_one_prompt_per_step_are_left_out() -> None:
    small = replace(linear_profile(BATCH, BATCH, 0.0), kv_capacity_tokens=21_000)
    allowed = reachable(small)
    tokens = LENGTHS.sum(axis=1)[:, None] * BATCH
    assert allowed[:, :2].tolist() == (tokens <= 21_000)[:, :2].tolist()
    assert allowed.sum(axis=0).min() >= 4, "the four shortest stand in where memory holds fewer"
    wide = replace(small, batch=np.array([1.0, 2.0, 4.0, 256.0]))
    assert not reachable(wide)[LENGTHS[:, 1] < 256, 3].any()


def test_the_fit_of_a_plan_tells_the_error_at_its_batch_from_that_of_a_wandering_batch() -> None:
    growing = linear_profile(1e-4 * BATCH, np.full(4, 0.01), 0.0)
    report = plan_fit(growing, fit_curve(growing), 4.0, 256)
    assert report.at_batch.worst < 1e-9
    assert report.wandering.worst_batch in (2, 8)
    assert report.wandering.worst > 0.3
    capped = plan_fit(growing, fit_curve(growing), 1.0, 1)
    assert capped.wandering.worst < 1e-9, "a group of one sequence cannot wander"


def test_the_shipped_curves_are_within_a_ninth_on_average_and_poor_where_the_record_says() -> None:
    errors = [curve_error(p, fit_curve(p), 1, 256) for p in bundled_snapshot().profiles.values()]
    assert max(error.mean for error in errors) < 0.115
    assert sum(error.mean for error in errors) / len(errors) < 0.055
    poor = [error for error in errors if error.worst > 0.3]
    assert poor
    assert all(error.worst_output_tokens == 2000 for error in poor), "long answers on long prompts"
    assert max(error.worst for error in errors) < 0.54
