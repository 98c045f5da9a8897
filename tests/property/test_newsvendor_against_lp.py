"""The closed form of one class against independent oracles: LP (22) by HiGHS, and brute force."""

import numpy as np
import pytest

from kvplan_solver.instance import Ambiguity, ClassInput
from kvplan_solver.newsvendor import robust_order, worst_case_cost
from tests.property.newsvendor_lp import block_costs, lp_22

SLICES = 8
PER_SLICE = 260
COSTS = ((0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (1.0, 3.0), (3.0, 1.0), (10.0, 1.0), (1.0, 10.0), (100.0, 1.0))


def _samples(rng: np.random.Generator, limit: int) -> np.ndarray:
    count = int(rng.choice([1, 2, 3, 5, 8, 12]))
    kind = rng.choice(["ties", "real", "equal", "ends", "skewed"])
    drawn = {
        "ties": rng.integers(0, limit + 1, count).astype(float),
        "real": rng.uniform(0, limit, count),
        "equal": np.full(count, float(rng.integers(0, limit + 1))),
        "ends": rng.choice([0.0, float(limit)], count),
        "skewed": np.minimum(limit, rng.lognormal(1.0, 1.2, count)),
    }
    return np.sort(drawn[str(kind)])


def _random_class(seed: int) -> ClassInput:
    rng = np.random.default_rng(seed)
    limit = int(rng.integers(1, 60))
    cp, cw = COSTS[int(rng.integers(len(COSTS)))]
    return ClassInput(
        name="c", arrival_rate=1.0, input_tokens_mean=0.0, input_tokens_p95=0, input_tokens_max=0,
        shared_prefix_tokens=0, max_output_tokens=limit, output_lengths=_samples(rng, limit),
        latency_slo_seconds=1.0, preemption_cost=cp, waste_cost=cw,
        radius=float(rng.choice([0.0, 0.15, 1.0, 5.0, 20.0, 1000.0])),
    )  # fmt: skip


def _reservations(c: ClassInput, seed: int) -> np.ndarray:
    """Both ends of the support, a sample, and a point in between."""
    rng, limit = np.random.default_rng(seed), float(c.max_output_tokens)
    return np.array([0.0, limit, float(rng.choice(c.output_lengths)), rng.uniform(0, limit)])


def _relative_error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.max(np.abs(found - truth) / np.maximum(1.0, np.abs(truth))))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_closed_form_and_linear_program_agree_to_nine_digits(part: int) -> None:
    for seed in range(part * PER_SLICE, (part + 1) * PER_SLICE):
        c = _random_class(seed)
        eta = _reservations(c, seed)
        solution = lp_22(c, np.append(eta, 0.0), np.append(eta, float(c.max_output_tokens)))
        *at_eta, optimum = block_costs(c, solution)
        order = robust_order(c, Ambiguity.WASSERSTEIN_1)
        ours = worst_case_cost(c, Ambiguity.WASSERSTEIN_1, np.append(eta, order.output_tokens))
        truth = np.array([*at_eta, optimum])
        assert _relative_error(ours, truth) <= 1e-9, f"seed {seed}: f(η) {ours} against {truth}"
        assert order.cost == pytest.approx(optimum, rel=1e-9, abs=1e-9), f"seed {seed}: V"
        assert 0 <= order.output_tokens <= c.max_output_tokens


def _by_definition(c: ClassInput, ambiguity: Ambiguity, eta: float) -> float:
    """Every sample alone moves to the worst of many places it may lie in."""
    total, limit = 0.0, float(c.max_output_tokens)
    for xi in c.output_lengths:
        if ambiguity is Ambiguity.SCALE:
            places = np.array([min(limit, xi * (1 + c.radius))])
        else:
            places = np.linspace(max(0.0, xi - c.radius), min(limit, xi + c.radius), 41)
        losses = c.preemption_cost * (places - eta).clip(0) + c.waste_cost * (eta - places).clip(0)
        total += float(losses.max())
    return total / len(c.output_lengths)


@pytest.mark.parametrize("ambiguity", [Ambiguity.WASSERSTEIN_INF, Ambiguity.SCALE])
def test_other_sets_match_their_definition(ambiguity: Ambiguity) -> None:
    for seed in range(300):
        c = _random_class(seed)
        eta = _reservations(c, seed)
        truth = np.array([_by_definition(c, ambiguity, x) for x in eta])
        assert _relative_error(worst_case_cost(c, ambiguity, eta), truth) <= 1e-9, f"seed {seed}"


@pytest.mark.parametrize("ambiguity", [Ambiguity.WASSERSTEIN_INF, Ambiguity.SCALE])
def test_no_reservation_beats_the_order_of_the_other_sets(ambiguity: Ambiguity) -> None:
    for seed in range(300):
        c = _random_class(seed)
        order = robust_order(c, ambiguity)
        grid = worst_case_cost(c, ambiguity, np.linspace(0, c.max_output_tokens, 241))
        at_order = worst_case_cost(c, ambiguity, np.array([order.output_tokens]))[0]
        assert order.cost == pytest.approx(at_order, rel=1e-12)
        assert order.cost <= grid.min() + 1e-9 * max(1.0, order.cost), f"seed {seed}"
