"""The certified method lies inside the reference's bracket on every tiny instance, and its bound below it.

The reference shares no code with the method: full enumeration of z and δ in cvxpy, see
``kvplan_solver.reference``. 320 instances, spread over ten regimes in which a method can go wrong.
"""

import math

import pytest

from kvplan_solver.certificate import certify
from kvplan_solver.certified.method import solve_certified
from kvplan_solver.reference import bracket
from kvplan_solver.result import Options, Status
from tests.property.tiny_instances import random_tiny_instance, regime_of

INSTANCES, SHARDS = 320, 32
TOLERANCE = 1e-6
"""Relative tolerance of the reference's own linear programs."""


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_certified_lies_inside_the_bracket(shard: int) -> None:
    for seed in range(shard, INSTANCES, SHARDS):
        _check(seed)


def _check(seed: int) -> None:
    instance = random_tiny_instance(seed)
    result = solve_certified(instance, Options(gap_target=0.0, effort=3))
    truth = bracket(instance)
    where = f"seed {seed}, {regime_of(seed)}: objective {result.objective}, bound {result.lower_bound}, {truth}"
    if math.isinf(truth.upper):
        assert result.status is Status.INFEASIBLE, where
        return
    slack = TOLERANCE * max(1.0, abs(truth.upper))
    assert truth.lower - slack <= result.objective <= truth.upper + slack, where
    assert result.lower_bound <= truth.upper + slack, where
    certificate = certify(instance, result)
    assert certificate.holds, (where, certificate.violations)
