"""One class in closed form: the facts the documentation states."""

import numpy as np
import pytest

from kvplan_solver.instance import Ambiguity, ClassInput
from kvplan_solver.newsvendor import robust_order, worst_case_cost
from tests.builders import a_class

HUNDRED = tuple(float(n) for n in range(1, 101))


def _order(c: ClassInput, ambiguity: Ambiguity = Ambiguity.WASSERSTEIN_1) -> float:
    return robust_order(c, ambiguity).output_tokens


def test_cost_ratio_ten_gives_the_fractile_0_91() -> None:
    c = a_class(lengths=HUNDRED, preemption_cost=10.0, waste_cost=1.0)
    assert c.fractile == pytest.approx(0.909, abs=5e-4)
    assert _order(c) == 91.0


def test_the_wasserstein_1_order_is_a_step_function_of_the_radius() -> None:
    sample_average = _order(a_class(lengths=HUNDRED))
    threshold = robust_order(a_class(lengths=HUNDRED), Ambiguity.WASSERSTEIN_1).shift_threshold_tokens
    radii = np.linspace(0, 3 * threshold, 60)
    orders = [_order(a_class(lengths=HUNDRED, radius=float(radius))) for radius in radii]
    below = [order for order, radius in zip(orders, radii, strict=True) if radius <= threshold]
    above = [order for order, radius in zip(orders, radii, strict=True) if radius > threshold]
    assert set(below) == {sample_average}
    assert min(above) > sample_average
    assert len(set(orders)) <= 3  # not "shifted by an amount that grows with the radius"


def test_the_paper_s_radius_lies_far_below_the_threshold() -> None:
    c = a_class(lengths=HUNDRED, radius=0.15 * 50.5, max_output_tokens=8192)
    assert robust_order(c, Ambiguity.WASSERSTEIN_1).shift_threshold_tokens > 10 * c.radius


@pytest.mark.parametrize("ambiguity", [Ambiguity.WASSERSTEIN_INF, Ambiguity.SCALE])
def test_the_other_sets_do_move_the_order_with_the_radius(ambiguity: Ambiguity) -> None:
    radii = (0.0, 0.1, 0.2, 0.4)
    orders = [_order(a_class(lengths=HUNDRED, radius=radius), ambiguity) for radius in radii]
    assert orders == sorted(orders)
    assert len(set(orders)) == len(radii)


DEGENERATE = {
    "one sample is its own order": (a_class(lengths=(70,)), 70.0),
    "equal samples are the order": (a_class(lengths=(70, 70, 70)), 70.0),
    "samples at zero reserve nothing": (a_class(lengths=(0, 0)), 0.0),
    "samples at Lmax reserve Lmax": (a_class(lengths=(512, 512)), 512.0),
    "free waste reserves the largest sample": (a_class(waste_cost=0.0), 400.0),
    "free preemption reserves the smallest sample": (a_class(preemption_cost=0.0), 40.0),
    "a huge radius reserves q·Lmax": (a_class(lengths=(70,), radius=1e9), 512 * 10 / 11),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_input(case: str) -> None:
    c, expected = DEGENERATE[case]
    order = robust_order(c, Ambiguity.WASSERSTEIN_1)
    assert order.output_tokens == pytest.approx(expected)
    cost = worst_case_cost(c, Ambiguity.WASSERSTEIN_1, np.array([order.output_tokens]))[0]
    assert order.cost == pytest.approx(cost, rel=1e-12, abs=1e-12)


def test_outside_the_support_every_token_costs_its_full_price() -> None:
    c = a_class(lengths=(70,), preemption_cost=10.0, waste_cost=1.0)
    low, zero, top, high = worst_case_cost(c, Ambiguity.WASSERSTEIN_1, np.array([-5.0, 0.0, 512.0, 517.0]))
    assert low - zero == pytest.approx(50.0)
    assert high - top == pytest.approx(5.0)
