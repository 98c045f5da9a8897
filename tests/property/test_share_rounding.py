"""Shares in thousandths keep every constraint of the exact plan, whatever the instance."""

import numpy as np
import pytest

from kvplan_operator.plan.shares import round_result
from kvplan_solver.certificate import certify
from kvplan_solver.result import Options, Status
from kvplan_solver.solve import solve
from tests.property.tiny_instances import random_tiny_instance, regime_of

SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed} {regime_of(seed)}")
def test_a_rounded_plan_passes_the_default_certificate(seed: int) -> None:
    instance = random_tiny_instance(seed)
    exact = solve(instance, Options(gap_target=0.001))
    if exact.status not in (Status.OPTIMAL, Status.FEASIBLE):
        pytest.skip("no plan exists for this floor on GPUs")
    rounded = round_result(instance, exact, 0.001)
    assert certify(instance, rounded).violations == ()
    np.testing.assert_allclose(rounded.routing * 1000, np.round(rounded.routing * 1000), atol=1e-9)
    assert np.abs(rounded.routing - exact.routing).max() < 0.02
