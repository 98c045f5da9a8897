"""Equation (7) with slots and burstiness, against numbers worked out by hand."""

import numpy as np
import pytest

from kvplan_solver.instance import Instance
from kvplan_solver.queueing import utilisation, variability, waiting_seconds
from kvplan_solver.service_time import arrival_scv, service_scv, service_seconds
from tests.builders import a_class, a_configuration, nodes


def _wait(rate: float, T: float, z: float, S: float, v: float) -> float:
    arrays = [np.array([[rate]]), np.array([[T]]), np.array([z]), np.array([S]), np.array([v])]
    return float(waiting_seconds(*arrays)[0])


def test_one_slot_is_pollaczek_khinchin() -> None:
    # M/M/1 at u = 0.5: W = u·T/(1−u) = 2 s.
    assert _wait(0.25, 2.0, 1, 1, 1.0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("why", "arguments", "expected"),
    [
        ("deterministic service halves the wait", (0.25, 2.0, 1, 1, 0.5), 1.0),
        ("a second slot halves load and wait again", (0.5, 2.0, 1, 2, 1.0), 1.0),
        ("two groups share the rate", (0.5, 2.0, 2, 1, 1.0), 2.0),
        ("nothing arrives", (0.0, 2.0, 1, 1, 1.0), 0.0),
        ("no groups, no row", (0.0, 2.0, 0, 1, 1.0), 0.0),
        ("an overloaded queue never empties", (1.0, 2.0, 1, 1, 1.0), np.inf),
    ],
)
def test_waiting(why: str, arguments: tuple[float, float, float, float, float], expected: float) -> None:
    assert _wait(*arguments) == pytest.approx(expected), why


def test_utilisation_counts_slots_of_all_groups() -> None:
    u = utilisation(np.array([[2.0], [1.0]]), np.array([[1.0], [4.0]]), np.array([3.0]), np.array([4.0]))
    assert u[0] == pytest.approx(6 / 12)


def test_service_time_is_equation_1() -> None:
    c, k = a_class(lengths=[100, 300]), a_configuration(overhead_seconds=0.5)
    assert service_seconds(c, k) == pytest.approx(0.0002 * 100 + 0.01 * 200 + 0.5)


def test_a_measured_service_time_wins() -> None:
    assert service_seconds(a_class(), a_configuration(service_seconds={"chat": 9.0})) == 9.0


def test_variability_mixes_classes_by_rate() -> None:
    steady = a_class("steady", lengths=[100], arrival_rate=1.0, arrival_scv=1.0)
    bursty = a_class("bursty", lengths=[100], arrival_rate=3.0, arrival_scv=5.0)
    instance = Instance((steady, bursty), (a_configuration(),), nodes(1))
    assert arrival_scv(instance) == pytest.approx(4.0)
    assert service_scv(instance)[0] == pytest.approx(0.0)
    assert variability(instance)[0] == pytest.approx(2.0)


def test_service_variability_is_that_of_the_lengths() -> None:
    instance = Instance((a_class(lengths=[0, 200], input_tokens_mean=0.0),), (a_configuration(),), nodes(1))
    assert service_scv(instance)[0] == pytest.approx(1.0)
