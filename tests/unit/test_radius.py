"""The suggested radius: noise that falls with the sample, drift only where something moved."""

import numpy as np
import pytest

from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats
from kvplan_solver.radius import bootstrap_noise, suggested_radius, wasserstein_1

DISTANCES: dict[str, tuple[list[float], list[float], float]] = {
    "equal samples": ([1, 2, 3], [3, 1, 2], 0),
    "one token to the right": ([1, 2, 3], [2, 3, 4], 1),
    "one of two samples moved": ([0, 10], [0, 30], 10),
    "half the mass moved": ([0], [0, 10], 5),
    "different sizes": ([0, 0, 6], [0, 3], (1 / 2 - 1 / 3) * 0 + 1.5),
}


@pytest.mark.parametrize("case", DISTANCES, ids=list(DISTANCES))
def test_w1_is_the_area_between_the_distribution_functions(case: str) -> None:
    first, second, distance = DISTANCES[case]
    assert wasserstein_1(np.array(first, float), np.array(second, float)) == pytest.approx(distance)


def lognormal(seed: int, size: int, shift: float = 0.0) -> Floats:
    return np.round(np.random.default_rng(seed).lognormal(5 + shift, 1.0, size))


def test_noise_falls_with_the_square_root_of_the_sample() -> None:
    small, large = bootstrap_noise(lognormal(1, 500), 0), bootstrap_noise(lognormal(1, 50_000), 0)
    assert 5 < small / large < 20  # √100 = 10


def test_noise_is_that_of_drawing_samples_themselves() -> None:
    samples = lognormal(2, 400)
    rng = np.random.default_rng(5)
    drawn = [wasserstein_1(rng.choice(samples, len(samples)), samples) for _ in range(400)]
    assert bootstrap_noise(samples, 0) == pytest.approx(np.quantile(drawn, 0.9), rel=0.15)


def test_equal_samples_and_a_single_one_have_no_noise() -> None:
    assert bootstrap_noise(np.full(100, 7.0), 0) == 0
    assert bootstrap_noise(np.array([7.0]), 0) == 0


def test_a_stationary_class_has_little_drift_and_a_moved_one_has_its_move() -> None:
    still = suggested_radius([lognormal(n, 2_000) for n in range(6)], 0)
    moved = suggested_radius([lognormal(n, 2_000, 0.4 * (n == 5)) for n in range(6)], 0)
    shift = (np.exp(0.4) - 1) * still.mean_tokens
    assert still.drift_tokens < 0.1 * shift
    assert moved.drift_tokens == pytest.approx(shift, rel=0.25)


def test_a_move_long_ago_is_no_recent_drift() -> None:
    windows = [lognormal(n, 2_000, 0.4 * (n >= 2)) for n in range(8)]
    estimate = suggested_radius(windows, 0)
    assert max(estimate.window_distances) == estimate.window_distances[1]
    assert estimate.drift_tokens < 0.2 * estimate.window_distances[1]


def test_one_window_has_noise_and_no_drift() -> None:
    estimate = suggested_radius([lognormal(0, 1_000)], 0)
    assert estimate.window_distances == ()
    assert estimate.tokens == estimate.noise_tokens > 0


def test_windows_without_traffic_are_skipped() -> None:
    full = [lognormal(0, 300), lognormal(1, 300)]
    assert suggested_radius([full[0], np.array([]), full[1]], 3) == suggested_radius(full, 3)


def test_the_same_seed_gives_the_same_radius() -> None:
    windows = [lognormal(0, 300), lognormal(1, 300)]
    assert suggested_radius(windows, 3) == suggested_radius(windows, 3)
    assert suggested_radius(windows, 3) != suggested_radius(windows, 4)


def test_the_relative_radius_is_of_the_mean_and_0_for_lengths_of_0() -> None:
    estimate = suggested_radius([np.array([0.0, 10.0])], 0)
    assert estimate.relative == pytest.approx(estimate.tokens / 5)
    assert suggested_radius([np.zeros(3)], 0).relative == 0


@pytest.mark.parametrize("windows", [[], [np.array([])], [np.array([1.0, np.nan])], [np.array([np.inf])]])
def test_windows_without_usable_samples_are_refused(windows: list[Floats]) -> None:
    with pytest.raises(InvalidInput, match="radius: window"):
        suggested_radius(windows, 0)
