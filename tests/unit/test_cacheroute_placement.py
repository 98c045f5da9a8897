"""LPT against the textbook loop, and planned backups."""

import numpy as np
import pytest

from kvplan_solver.cacheroute.inputs import Fleet, Floats, Ints, Settings, fleet, key_rates
from kvplan_solver.cacheroute.placement import Jobs, place
from kvplan_solver.cacheroute.plan import plan_keys


def textbook(jobs: Jobs, destinations: Fleet, initial: Floats) -> list[int]:
    """The algorithm as one would write it on a board: sort all destinations for every replica."""
    loads = initial.astype(float).tolist()
    members: list[int] = []
    for rate, count, class_of in zip(jobs.rates, jobs.replicas, jobs.class_of, strict=True):
        share = rate / count
        chosen: list[int] = []
        for _ in range(count):
            free = [r for r in range(len(loads)) if destinations.eligible[class_of, r] and r not in chosen]
            chosen.append(min(free, key=lambda r: ((loads[r] + share) / destinations.weights[r], r)))
        for r in chosen:
            loads[r] += share
        members.extend(sorted(chosen))
    return members


def random_case(seed: int) -> tuple[Jobs, Fleet, Floats]:
    """Whole-number rates times 12, so that shares of up to 4 replicas are exact in every arithmetic."""
    g = np.random.default_rng(seed)
    size, keys = int(g.integers(1, 9)), int(g.integers(1, 60))
    shares = g.integers(0, 2, (2, size)).astype(float)
    shares[:, 0] = 1.0
    destinations = fleet(
        [f"a-{r}" for r in range(size)], warm_slots=99, weights=g.choice([1.0, 2.0, 4.0], size), shares=shares
    )
    class_of = g.integers(0, 2, keys)
    limit = destinations.eligible.sum(axis=1)[class_of]
    replicas: Ints = np.minimum(g.integers(1, 5, keys), limit)
    rates = np.sort(g.integers(1, 40, keys) * 12.0)[::-1]
    initial: Floats = g.integers(0, 5, size).astype(np.float64) * 12.0
    return Jobs(rates, replicas, class_of), destinations, initial


@pytest.mark.parametrize("seed", range(60))
def test_placement_equals_the_textbook_loop(seed: int) -> None:
    jobs, destinations, initial = random_case(seed)
    assert place(jobs, destinations, initial).members.tolist() == textbook(jobs, destinations, initial)


def test_fast_path_for_single_replicas_equals_the_textbook_loop() -> None:
    g = np.random.default_rng(9)
    rates = np.sort(g.integers(1, 1_000, 400) * 1.0)[::-1]
    jobs = Jobs(rates, np.ones(400, dtype=np.int64), np.zeros(400, dtype=np.int64))
    destinations, initial = fleet([f"a-{r}" for r in range(7)], warm_slots=99), np.zeros(7)
    assert place(jobs, destinations, initial).members.tolist() == textbook(jobs, destinations, initial)


def test_replicas_of_one_key_lie_on_distinct_destinations() -> None:
    plan = plan_keys(
        key_rates([1, 2, 3], [40.0, 30.0, 20.0]),
        fleet([f"a-{r}" for r in range(5)], warm_slots=9),
        Settings(10.0),
    )
    for key, count in ((1, 4), (2, 3), (3, 2)):
        assert len(set(plan.home(key))) == count


def test_draining_destination_of_weight_zero_takes_nothing() -> None:
    plan = plan_keys(
        key_rates(range(20), [1.0] * 20),
        fleet(["a-0", "a-1"], warm_slots=20, weights=[1.0, 0.0]),
        Settings(9.0),
    )
    assert set(plan.members.tolist()) == {0}
    assert set(plan.backups.tolist()) == {-1}


def test_every_single_replica_key_has_a_backup_elsewhere_and_replicated_keys_have_none() -> None:
    g = np.random.default_rng(6)
    rates = key_rates(g.integers(0, 2**64, 300, dtype=np.uint64), g.lognormal(0, 1.5, 300))
    plan = plan_keys(rates, fleet([f"a-{r}" for r in range(6)], warm_slots=300), Settings(q_cap=8.0))
    single = plan.replicas == 1
    assert (plan.backups[~single] == -1).all()
    assert (plan.backups[single] >= 0).all()
    assert (plan.backups[single] != plan.members[plan.offsets[:-1]][single]).all()


def test_losing_any_destination_leaves_the_survivors_even() -> None:
    g = np.random.default_rng(7)
    rates = key_rates(g.integers(0, 2**64, 4_000, dtype=np.uint64), g.lognormal(0, 1.0, 4_000))
    plan = plan_keys(rates, fleet([f"a-{r}" for r in range(8)], warm_slots=4_000), Settings(q_cap=1e9))
    for lost in range(8):
        here = plan.members == lost
        after = plan.loads + np.bincount(plan.backups[here], weights=plan.shares[here], minlength=8)
        survivors = np.delete(after, lost)
        assert survivors.max() / survivors.mean() < 1.01


def test_backup_respects_the_class_of_the_key() -> None:
    routed = fleet(["a-0", "a-1", "b-0"], warm_slots=9, shares=[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    plan = plan_keys(key_rates([1, 2], [1.0, 1.0], class_of=[0, 1]), routed, Settings(q_cap=9.0))
    assert plan.backups.tolist() == [1, -1]


def test_backups_can_be_left_out() -> None:
    plan = plan_keys(key_rates([1], [1.0]), fleet(["a-0", "a-1"], warm_slots=9), Settings(9.0, backups=False))
    assert plan.backups.tolist() == [-1]
