"""Two simulated hours under Auto: noise moves nothing and writes nothing, a change of load does both."""

import pytest

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionType
from tests.simulated_fleet import MINUTES, World, two_hours


def assert_at_rest(world: World) -> None:
    """One cold change, the first; its last write a minute later."""
    assert world.changes == [0]
    assert max(world.writes) <= 2
    assert len(world.solves) > MINUTES // 6
    ready = next(c for c in world.fleet.status.conditions if c.type == ConditionType.READY)
    assert ready.status is ConditionStatus.TRUE


@pytest.mark.parametrize(("seed", "load"), [(1, 1.0), (2, 3.0), (3, 6.0)])
def test_constant_load_with_noise_changes_groups_once_and_then_writes_nothing(seed: int, load: float) -> None:
    assert_at_rest(two_hours(seed, lambda _: load))


def test_restarts_of_the_operator_change_nothing_and_write_nothing() -> None:
    assert_at_rest(two_hours(5, lambda _: 3.0, restarts=(20, 40, 41, 90)))


def test_a_load_that_grows_sixfold_changes_groups_again() -> None:
    world = two_hours(4, lambda minute: 1.0 if minute < 70 else 6.0)
    assert [minute >= 70 for minute in world.changes] == [False, True]
