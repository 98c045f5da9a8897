"""Reservations on the block grid: the best neighbour of the closed form, and the price of less."""

import numpy as np
import pytest

from kvplan_solver.certified.curves import ReservationCurves
from kvplan_solver.instance import Instance
from kvplan_solver.newsvendor import worst_case_cost
from tests.builders import a_class, a_configuration, nodes


def _curves(block: int = 16, **changes: object) -> ReservationCurves:
    instance = Instance((a_class(**changes),), (a_configuration(),), nodes(1), block_tokens=block)  # type: ignore[arg-type]
    return ReservationCurves(instance)


@pytest.mark.parametrize("block", [1, 4, 16, 100, 1000])
@pytest.mark.parametrize("radius", [0.0, 30.0, 500.0])
def test_the_best_reservation_is_the_cheapest_on_the_grid(block: int, radius: float) -> None:
    curves = _curves(block, lengths=[3, 40, 41, 97, 200, 511], radius=radius)
    c = curves.instance.classes[0]
    grid = np.arange(curves.smallest[0], c.input_tokens_p95 + c.max_output_tokens + block, block)
    costs = worst_case_cost(c, curves.instance.ambiguity, grid - c.input_tokens_p95)
    assert curves.best_cost[0] == pytest.approx(float(costs.min()), rel=1e-12)
    assert curves.best[0] in grid


def test_less_costs_more_and_ever_more() -> None:
    extras = _curves(lengths=list(range(0, 500, 7))).extras(0)
    assert extras[0] == 0
    slopes = np.diff(extras)
    assert np.all(slopes >= 0)
    assert np.all(np.diff(slopes) >= -1e-9)


def test_a_chord_is_tight_at_its_point_and_below_everywhere() -> None:
    curves = _curves(lengths=list(range(0, 500, 7)))
    extras = curves.extras(0)
    deficits = np.arange(len(extras)) * 16.0
    for step in range(0, len(extras), 5):
        constant, slope = curves.chord(0, float(deficits[step]))
        line = constant + slope * deficits
        assert line[step] == pytest.approx(extras[step], abs=1e-9)
        assert np.all(line <= extras + 1e-9)


def test_a_reservation_never_falls_below_the_prompt() -> None:
    curves = _curves(lengths=[0, 0, 0])
    assert curves.best[0] == curves.smallest[0] == 128
    assert curves.extras(0).tolist() == [0.0]
    assert curves.chord(0, 0.0) == (0.0, 0.0)
