"""One test for every row of the planner's rules table (03-cacheroute §1)."""

import numpy as np
import pytest

from kvplan_solver.cacheroute.capacity import KeyCapacity, warm_slots
from kvplan_solver.cacheroute.counts import guarded_ceil
from kvplan_solver.cacheroute.inputs import Settings, fleet, key_rates
from kvplan_solver.cacheroute.joint import joint_fleet
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.plan import plan_keys

THREE = ["a-0", "a-1", "a-2"]


def homes(plan: KeyPlan) -> dict[int, tuple[str, ...]]:
    return {int(key): plan.home(int(key)) for key in plan.keys}


@pytest.mark.parametrize(
    ("ratio", "replicas"),
    [(0.1 * 3 / 0.1, 3), (3.0, 3), (3.0 + 1e-8, 4), (2.999999, 3), (1e-12, 0), (1e6, 1_000_000)],
)
def test_ceiling_of_an_exact_multiple_gains_no_replica_by_rounding(ratio: float, replicas: int) -> None:
    assert guarded_ceil(np.array([ratio])).tolist() == [replicas]


def test_key_that_does_not_fit_is_skipped_and_the_next_one_tried() -> None:
    rates = key_rates([1, 2, 3], [10.0, 9.0, 1.0])
    plan = plan_keys(rates, fleet(THREE, warm_slots=[1, 1, 1]), Settings(q_cap=5.0))
    # keys 1 and 2 need two slots each, key 3 one; three slots hold the first and the third
    assert set(homes(plan)) == {1, 3}
    assert plan.report.skipped == 1
    assert plan.report.slots_used == 3


def test_key_that_needs_more_destinations_than_there_are_is_capped_and_reported() -> None:
    plan = plan_keys(key_rates([7, 8], [100.0, 1.0]), fleet(THREE, warm_slots=9), Settings(q_cap=5.0))
    assert plan.home(7) == ("a-0", "a-1", "a-2")
    assert plan.report.oversized == (7,)
    assert plan.loads.sum() == pytest.approx(101.0)


def test_equal_rates_go_by_ascending_key_and_equal_loads_by_destination_order() -> None:
    plan = plan_keys(
        key_rates([12, 10, 11], [1.0, 1.0, 1.0]), fleet(["c-0", "a-0", "b-0"], warm_slots=1), Settings(1.0)
    )
    assert homes(plan) == {10: ("a-0",), 11: ("b-0",), 12: ("c-0",)}


def test_plan_does_not_depend_on_the_order_of_keys_or_destinations() -> None:
    generator = np.random.default_rng(5)
    keys = generator.integers(0, 2**64, 500, dtype=np.uint64)
    rates = np.round(generator.lognormal(0, 1.6, 500), 1)
    names = [f"a-{n}" for n in range(7)]
    first = plan_keys(key_rates(keys, rates), fleet(names, warm_slots=60), Settings(q_cap=3.0))
    mixed = generator.permutation(500)
    second = plan_keys(key_rates(keys[mixed], rates[mixed]), fleet(names[::-1], warm_slots=60), Settings(q_cap=3.0))
    for column in ("members", "offsets", "backups", "loads"):
        assert np.array_equal(getattr(first, column), getattr(second, column)), column
    assert np.array_equal(first.keys, second.keys)


def test_idle_and_invalid_rates_are_dropped_counted_and_planning_goes_on() -> None:
    rates = key_rates([1, 2, 3, 4, 5, 6], [0.0, np.nan, np.inf, -np.inf, -1.0, 2.0])
    plan = plan_keys(rates, fleet(THREE, warm_slots=9), Settings(q_cap=5.0))
    assert set(homes(plan)) == {6}
    assert (plan.report.dropped.idle, plan.report.dropped.invalid) == (1, 4)


@pytest.mark.parametrize("rates", [[], [np.nan, -1.0], [0.0, 0.0]])
def test_without_any_valid_rate_there_is_no_table_to_install(rates: list[float]) -> None:
    plan = plan_keys(key_rates(range(len(rates)), rates), fleet(THREE, warm_slots=9), Settings(q_cap=5.0))
    assert plan.outcome is Outcome.RATES_UNAVAILABLE
    assert len(plan.keys) == 0


def test_unequal_destinations_share_the_load_by_capacity() -> None:
    generator = np.random.default_rng(1)
    keys = generator.integers(0, 2**64, 3_000, dtype=np.uint64)
    rates = generator.lognormal(0, 1.0, 3_000)
    uneven = fleet([f"a-{n}" for n in range(6)], warm_slots=1_000, weights=[1, 1, 2, 2, 4, 4])
    plan = plan_keys(key_rates(keys, rates), uneven, Settings(q_cap=1e9))
    relative = plan.loads / plan.weights
    assert relative.max() / relative.mean() < 1.001


def test_each_replica_goes_where_its_share_weighs_least_on_the_capacity() -> None:
    uneven = fleet(["a-0", "b-0"], warm_slots=9, weights=[1.0, 3.0])
    plan = plan_keys(key_rates([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0]), uneven, Settings(q_cap=100.0))
    # (0+4)/1 > (0+4)/3; (0+3)/1 > (4+3)/3; (0+2)/1 < (7+2)/3; (2+1)/1 > (7+1)/3
    assert homes(plan) == {1: ("b-0",), 2: ("b-0",), 3: ("a-0",), 4: ("b-0",)}


def test_key_slower_than_the_eviction_window_is_not_admitted() -> None:
    settings = Settings(q_cap=5.0, eviction_window_seconds=60.0)
    plan = plan_keys(key_rates([1, 2], [1 / 60, 0.016]), fleet(THREE, warm_slots=9), settings)
    assert set(homes(plan)) == {1}
    assert plan.report.below_floor == 1
    assert plan.report.cold_rate == pytest.approx(0.016)


def test_keys_go_only_to_configurations_their_class_is_routed_to() -> None:
    rates = key_rates([1, 2, 3], [3.0, 2.0, 1.0], class_of=[0, 1, 1])
    slots = [("tp1-0", 0), ("tp2-0", 1), ("tp2-1", 1)]
    joint = joint_fleet(slots, [[1.0, 0.0], [0.0, 1.0]], [3.0, 3.0], [5, 5], rates)
    plan = plan_keys(rates, joint, Settings(q_cap=100.0))
    assert homes(plan) == {1: ("tp1-0",), 2: ("tp2-0",), 3: ("tp2-1",)}


def test_planned_load_of_a_destination_follows_the_routing() -> None:
    generator = np.random.default_rng(2)
    keys = generator.integers(0, 2**64, 2_000, dtype=np.uint64)
    rates = key_rates(keys, generator.lognormal(0, 1.0, 2_000))
    slots = [("tp1-0", 0), ("tp1-1", 0), ("tp2-0", 1)]
    joint = joint_fleet(slots, [[0.5, 0.5]], [float(rates.rates.sum())], [2_000, 2_000], rates)
    plan = plan_keys(rates, joint, Settings(q_cap=1e9))
    assert plan.loads / plan.loads.sum() == pytest.approx([0.25, 0.25, 0.5], abs=0.001)


def test_load_that_no_key_explains_is_the_initial_load_of_its_destinations() -> None:
    rates = key_rates([1], [2.0])
    joint = joint_fleet([("tp1-0", 0), ("tp2-0", 1)], [[0.75, 0.25]], [10.0], [5, 5], rates)
    plan = plan_keys(rates, joint, Settings(q_cap=100.0))
    assert plan.initial_load == pytest.approx([6.0, 2.0])


def test_unadmitted_keys_are_part_of_the_cold_load() -> None:
    plan = plan_keys(key_rates([1, 2], [4.0, 2.0]), fleet(["a-0", "a-1"], warm_slots=[1, 0]), Settings(9.0))
    assert plan.initial_load == pytest.approx([1.0, 1.0])
    assert plan.loads == pytest.approx([5.0, 1.0])


@pytest.mark.parametrize(
    ("capacity", "reserved", "reusable", "slots"),
    [
        (100_000, 10_000, 2_000, 35),
        (100_000, 90_000, 2_000, 5),
        (100_000, 120_000, 2_000, 0),
        (1_000, 0, 2_000, 0),
    ],
)
def test_warm_slots_are_what_reservations_leave_up_to_seven_tenths(
    capacity: int, reserved: float, reusable: float, slots: int
) -> None:
    assert warm_slots(capacity, reserved, reusable) == slots


def test_no_room_for_a_warm_prefix_turns_affinity_off_with_that_reason() -> None:
    plan = plan_keys(key_rates([1], [2.0]), fleet(THREE, warm_slots=0), Settings(q_cap=5.0))
    assert plan.outcome is Outcome.NO_ROOM


def test_cold_share_lowers_the_knee_and_both_numbers_are_kept() -> None:
    capacity = KeyCapacity(knee=10.0, cold_share=0.3)
    assert capacity.knee == 10.0
    assert capacity.q_cap == pytest.approx(7.0)
