"""Replanning keeps caches warm and the load bound; install-or-hold weighs both."""

from dataclasses import replace

import numpy as np
import pytest

from kvplan_solver.cacheroute.inputs import Admission, Fleet, KeyRates, Settings, fleet, key_rates
from kvplan_solver.cacheroute.install import InstallReason, InstallRules, decide, loads_at
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.replan import moved_pairs, pairs_to_warm, replan_keys, shrunk_epsilon

SETTINGS = Settings(q_cap=1e9)


def sample(count: int, seed: int, spread: float = 1.6482) -> KeyRates:
    g = np.random.default_rng(seed)
    return key_rates(g.integers(0, 2**64, count, dtype=np.uint64), g.lognormal(0, spread, count))


def drifted(rates: KeyRates, seed: int, sigma: float = 0.3) -> KeyRates:
    g = np.random.default_rng(seed)
    return replace(rates, rates=rates.rates * np.exp(sigma * g.standard_normal(len(rates))))


def destinations(count: int, first: int = 0) -> Fleet:
    return fleet([f"tp2-{n:03d}" for n in range(first, first + count)], warm_slots=10_000)


@pytest.mark.parametrize("keys", [10, 40, 128, 512, 2_000])
@pytest.mark.parametrize("q_cap", [1e9, 20.0])
def test_largest_load_never_exceeds_the_fresh_one_by_more_than_epsilon(keys: int, q_cap: float) -> None:
    where, settings = destinations(12), Settings(q_cap=q_cap)
    for seed in range(6):
        plan = plan_keys(sample(keys, seed), where, settings)
        now = drifted(sample(keys, seed), 100 + seed, sigma=0.8)
        fresh, again = plan_keys(now, where, settings, plan), replan_keys(now, where, settings, plan)
        assert again.largest_load <= 1.05 * fresh.largest_load * (1 + 1e-9)
        assert sorted(again.keys.tolist()) == sorted(fresh.keys.tolist())
        for key in again.keys[:20].tolist():
            assert len(set(again.home(key))) == len(fresh.home(key))


@pytest.mark.parametrize(("keys", "most"), [(128, 0.092), (512, 0.038), (4_096, 0.003)])
def test_few_pairs_move_over_six_steps_of_drift(keys: int, most: float) -> None:
    everyone = sample(128_824, 0)
    hottest = np.sort(np.argsort(-everyone.rates)[:keys])
    rates, where = everyone.rows(hottest), destinations(30)
    plan, shares = plan_keys(rates, where, SETTINGS), []
    for step in range(6):
        rates = drifted(rates, step)
        again = replan_keys(rates, where, SETTINGS, plan)
        moved, pairs = moved_pairs(plan, again)
        shares.append(moved / pairs)
        plan = again
    assert np.mean(shares) <= most


def test_unchanged_rates_move_nothing() -> None:
    rates, where = sample(500, 1), destinations(9)
    plan = plan_keys(rates, where, SETTINGS)
    assert np.array_equal(replan_keys(rates, where, SETTINGS, plan).members, plan.members)


def test_failed_destination_moves_only_what_it_held_and_most_of_that_to_the_backups() -> None:
    rates = sample(2_000, 2, spread=1.0)
    plan = plan_keys(rates, destinations(10), SETTINGS)
    again = replan_keys(rates, destinations(9, first=1), SETTINGS, plan)
    held = plan.members == 0
    assert moved_pairs(plan, again) == (int(held.sum()), 2_000)
    backups = plan.backups[held] - 1  # destination numbers shift by the lost first one
    assert np.mean(again.members[held] == backups) > 0.95


def test_new_destination_is_given_nine_tenths_of_the_mean_load() -> None:
    rates = sample(2_000, 3)
    plan = plan_keys(rates, destinations(10), SETTINGS)
    again = replan_keys(rates, destinations(11), SETTINGS, plan)
    assert again.loads[10] >= 0.9 * again.loads.mean()
    moved, pairs = moved_pairs(plan, again)
    assert moved / pairs < 0.1


def test_key_that_gains_a_replica_keeps_its_places() -> None:
    where, settings = destinations(6), Settings(q_cap=10.0)
    plan = plan_keys(key_rates([1, 2, 3], [15.0, 9.0, 8.0]), where, settings)
    again = replan_keys(key_rates([1, 2, 3], [25.0, 9.0, 8.0]), where, settings, plan)
    assert len(again.home(1)) == 3
    assert set(plan.home(1)) < set(again.home(1))
    fewer = replan_keys(key_rates([1, 2, 3], [9.5, 9.0, 8.0]), where, settings, again)
    assert set(fewer.home(1)) < set(again.home(1))


def test_replan_keeps_places_under_byte_limits_too() -> None:
    g = np.random.default_rng(8)
    keys, sizes = g.integers(0, 2**64, 600, dtype=np.uint64), g.integers(1, 40, 600)
    rates = key_rates(keys, g.lognormal(0, 1.2, 600), size_bytes=sizes)
    where = fleet([f"a-{n}" for n in range(8)], warm_slots=0, byte_limits=900.0)
    settings = Settings(q_cap=1e9, admission=Admission.BYTES)
    plan = plan_keys(rates, where, settings)
    again = replan_keys(drifted(rates, 9), where, settings, plan)
    held = np.bincount(again.members, weights=np.repeat(again.rates.size_bytes, again.replicas), minlength=8)
    assert held.max() <= 900.0
    moved, pairs = moved_pairs(plan, again)
    assert moved / pairs < 0.1


def test_replan_without_a_plan_in_force_is_a_fresh_plan() -> None:
    rates, where = sample(50, 4), destinations(5)
    nothing = plan_keys(key_rates([], []), where, SETTINGS)
    assert np.array_equal(
        replan_keys(rates, where, SETTINGS, nothing).members, plan_keys(rates, where, SETTINGS).members
    )


def test_replan_without_rates_says_so() -> None:
    plan = plan_keys(sample(50, 4), destinations(5), SETTINGS)
    assert replan_keys(key_rates([1], [np.nan]), destinations(5), SETTINGS, plan).outcome is (Outcome.RATES_UNAVAILABLE)


@pytest.mark.parametrize(
    ("load", "knee", "epsilon"),
    [(50.0, None, 0.05), (50.0, 100.0, 0.05), (96.0, 100.0, 1 / 48), (120.0, 100.0, 0.0)],
)
def test_epsilon_shrinks_as_the_headroom_shrinks(load: float, knee: float | None, epsilon: float) -> None:
    assert shrunk_epsilon(0.05, load, knee) == pytest.approx(epsilon)


def pair_of_plans(factor: float, seconds: float = 0.01) -> tuple[KeyPlan, KeyPlan]:
    """A plan of forty equal keys, and one after the keys of the first destination grew by a factor."""
    where = destinations(4)
    rates = key_rates(range(40), [1.0] * 40, saved_seconds=seconds)
    plan = plan_keys(rates, where, SETTINGS)
    hotter = np.where(plan.members == 0, factor, 1.0)
    now = key_rates(plan.keys, hotter, saved_seconds=seconds)
    return plan, replan_keys(now, where, SETTINGS, plan)


def test_first_table_is_installed() -> None:
    _, candidate = pair_of_plans(1.0)
    assert decide(None, candidate, 0.0).reason is InstallReason.FIRST_TABLE


def test_stale_load_is_installed_and_a_fresh_one_held() -> None:
    stale = decide(*pair_of_plans(3.0), since_install_seconds=60.0)
    assert stale.reason is InstallReason.STALE_LOAD
    assert stale.install
    assert stale.staleness > 0.15
    held = decide(*pair_of_plans(1.05), since_install_seconds=60.0)
    assert held.reason is InstallReason.NO_GAIN
    assert not held.install


def test_loads_of_the_old_table_are_taken_at_the_new_rates() -> None:
    plan, candidate = pair_of_plans(3.0)
    assert loads_at(plan, candidate) == pytest.approx([30.0, 10.0, 10.0, 10.0])


def test_install_waits_for_the_dwell_unless_a_destination_is_gone() -> None:
    plan, candidate = pair_of_plans(3.0)
    assert decide(plan, candidate, 10.0).reason is InstallReason.DWELL
    gone = plan_keys(candidate.rates, destinations(3), SETTINGS, plan)
    assert decide(plan, gone, 0.0).reason is InstallReason.DESTINATION_GONE


def test_install_waits_while_warming_the_moved_pairs_costs_too_much() -> None:
    plan, candidate = pair_of_plans(3.0, seconds=5.0)
    verdict = decide(plan, candidate, 60.0)
    assert verdict.reason is InstallReason.REWARM_BUDGET
    assert verdict.rewarm == pytest.approx(5.0 * pairs_to_warm(plan, candidate).size / (30 * 4))


def test_two_points_more_of_the_traffic_are_worth_an_install() -> None:
    narrow, wide = fleet(["a-0", "a-1"], warm_slots=10), fleet(["a-0", "a-1"], warm_slots=11)
    rates = key_rates(range(40), [1.0] * 40, saved_seconds=0.01)
    before, after = plan_keys(rates, narrow, SETTINGS), plan_keys(rates, wide, SETTINGS)
    verdict = decide(before, after, 60.0, InstallRules(load_tolerance=0.5))
    assert verdict.reason is InstallReason.MORE_ADMITTED
    assert verdict.admitted_growth == pytest.approx(0.05)


def test_candidate_that_plans_nothing_is_never_installed() -> None:
    plan, _ = pair_of_plans(1.0)
    empty = plan_keys(key_rates([1], [np.nan]), destinations(4), SETTINGS)
    for current in (None, plan):
        verdict = decide(current, empty, 60.0)
        assert verdict.reason is InstallReason.NOTHING_PLANNED
        assert not verdict.install


def test_moved_pairs_count_only_keys_that_both_plans_hold() -> None:
    where = destinations(3)
    before = plan_keys(key_rates([1, 2], [3.0, 2.0]), where, SETTINGS)
    after = plan_keys(key_rates([2, 3], [2.0, 1.0]), where, SETTINGS)
    assert moved_pairs(before, after) == (1, 1)
    assert after.keys[pairs_to_warm(before, after)].tolist() == [2, 3]
