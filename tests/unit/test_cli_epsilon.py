"""The two facts of `kvplan show`: ε as a step function, and where Algorithm 1 stops."""

from itertools import pairwise

import numpy as np
import pytest

from kvplan_cli.epsilon import order_at, orders_over_radius, radii_to_show, shift_thresholds
from kvplan_cli.sticking import endings, example_instance, starts
from kvplan_solver.certificate import certify
from kvplan_solver.instance import Ambiguity, ClassInput
from kvplan_solver.result import Method


def make_class(preemption: float = 10.0, radius: float = 5.0) -> ClassInput:
    lengths = np.sort(np.round(np.random.default_rng(7).lognormal(4, 1, 200))).clip(1, 900)
    return ClassInput(
        "chat",
        1.0,
        100,
        200,
        300,
        0,
        1000,
        lengths,
        1.0,
        preemption_cost=preemption,
        waste_cost=1.0,
        radius=radius,
    )


@pytest.mark.parametrize("preemption", [10.0, 1.0, 0.2])
def test_the_order_changes_at_the_two_thresholds_and_nowhere_else(preemption: float) -> None:
    c = make_class(preemption)
    first, second = shift_thresholds(c)
    edges = [0.0, first, second, 2 * second]
    orders = []
    for low, high in pairwise(edges):
        inside = np.linspace(low, high, 23)[1:-1]
        found = {order_at(c, Ambiguity.WASSERSTEIN_1, float(e)).output_tokens for e in inside}
        assert len(found) == 1
        orders.append(found.pop())
    assert orders[0] != orders[2]
    assert (len(set(orders)) == 3) == (preemption != 1.0)  # at equal costs the middle order is the sample's


@pytest.mark.parametrize("ambiguity", [Ambiguity.WASSERSTEIN_INF, Ambiguity.SCALE])
def test_the_other_sets_move_the_order_with_the_radius(ambiguity: Ambiguity) -> None:
    curve = orders_over_radius(make_class(), ambiguity, points=11)
    assert len(set(curve.output_tokens.tolist())) > 5


def test_the_drawn_curve_has_both_sides_of_every_jump() -> None:
    c = make_class()
    curve = orders_over_radius(c, Ambiguity.WASSERSTEIN_1, points=11)
    assert set(shift_thresholds(c)) <= set(curve.radii.tolist())
    assert np.all(np.diff(curve.radii) >= 0)


def test_the_radii_shown_hold_the_one_in_force_and_the_thresholds() -> None:
    c = make_class()
    radii = [radius for radius, _ in radii_to_show(c)]
    assert radii == sorted(radii)
    assert {c.radius, *shift_thresholds(c)} <= set(radii)


def test_the_literal_method_sticks_where_it_starts() -> None:
    instance = example_instance()
    found = {ending.start: ending for ending in endings(instance)}
    assert set(found) == {"(certified method)", *(words for words, _ in starts(instance))}
    assert found["no group at all"].result.groups == (0, 0, 0)
    assert found["one tp4"].result.groups[:2] == (0, 0)
    assert found["one tp4"].ratio > 1.3
    assert all(ending.ratio >= 1.0 for ending in found.values())
    assert all(certify(instance, ending.result).holds for ending in found.values())
    assert all(e.result.method is Method.LITERAL for start, e in found.items() if not start.startswith("("))
