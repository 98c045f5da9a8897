"""Rollouts on full GPUs, whatever happens: no GPU twice, never below the floor, an end, and the same bytes."""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from kvplan_operator.act.rollout import RolloutStep
from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.routing_plan import RoutingPlan
from tests.rollouts import TOKENS_PER_GPU, rollout_fleet, rollout_plan
from tests.simulated_cluster import SimulatedCluster

SIZES = (1, 2, 4)
MANY_EVENTS = 20_000


def full_plan(rng: random.Random, gpus: list[int], classes: dict[str, list[str]] | None = None) -> RoutingPlan:
    """A random partition that uses every GPU, with flags of its own."""
    groups: dict[str, list[str]] = {}
    for number, free in enumerate(gpus):
        left = free
        while left:
            size = rng.choice([size for size in SIZES if size <= left])
            groups.setdefault(f"tp{size}", []).append(f"n{number}")
            left -= size
    flags = {name: {"max-num-seqs": rng.choice(("8", "16"))} for name in groups}
    routed = {name: [k for k in on if k in groups] for name, on in (classes or {"chat": list(groups)}).items()}
    return rollout_plan(groups, flags=flags, classes={name: on for name, on in routed.items() if on})


@dataclass(frozen=True)
class Promise:
    """What a class keeps while plans change: KV tokens in thousandths on the configurations it is routed to."""

    configurations: frozenset[str]
    needed: int

    def kept(self, serving: Counter[str]) -> bool:
        return capacity(serving, self.configurations) * 1000 >= self.needed


def capacity(groups: Counter[str], configurations: frozenset[str]) -> int:
    return sum(groups[name] * int(name.removeprefix("tp")) * TOKENS_PER_GPU for name in configurations)


def promises(before: RoutingPlan | None, after: RoutingPlan, min_available_milli: int) -> list[Promise]:
    """The floors, worked out apart from the operator's own code."""
    if before is None:
        return []
    found = []
    for name in routes(before).keys() & routes(after).keys():
        configurations = routes(before)[name] | routes(after)[name]
        smaller = min(capacity(planned(plan), configurations) for plan in (before, after))
        found.append(Promise(configurations, min_available_milli * smaller))
    return found


def planned(plan: RoutingPlan) -> Counter[str]:
    return Counter({group.configuration: group.replicas for group in plan.spec.groups})


def routes(plan: RoutingPlan) -> dict[str, frozenset[str]]:
    return {c.name: frozenset(route.configuration for route in c.routes) for c in plan.spec.classes}


def roll_out(cluster: SimulatedCluster, plan: RoutingPlan, rules: RolloutRules) -> RolloutStep:
    """Let the operator look at random times, die at random commands and find things changed, until it is done."""
    kept = promises(cluster.before, plan, rules.min_available_milli)
    for _ in range(MANY_EVENTS):
        step = cluster.look(plan, rules)
        if step.complete or step.refusal is not None:
            return step
        for _ in range(cluster.rng.randrange(3)):
            check(cluster, kept)
        crash_after = cluster.rng.randrange(3) if cluster.rng.random() < 0.2 else None
        cluster.execute(step.commands, crash_after)
        for _ in range(cluster.rng.randrange(1, 8)):
            check(cluster, kept)
    raise AssertionError(f"not done: {step}")


def check(cluster: SimulatedCluster, kept: list[Promise]) -> None:
    cluster.happen()
    assert cluster.overdrawn() == ()
    serving = cluster.serving()
    assert all(promise.kept(serving) for promise in kept)


@pytest.mark.parametrize("seed", range(6))
def test_there_and_back_on_full_gpus_keeps_every_promise_and_ends_with_the_same_bytes(seed: int) -> None:
    rng = random.Random(seed)
    gpus = [4, 4, 4][: 2 + seed % 2]
    cluster = SimulatedCluster(rollout_fleet(*SIZES), gpus, rng)
    a, b = full_plan(rng, gpus), full_plan(rng, gpus)
    rules = RolloutRules(min_available_milli=400, drain_timeout_seconds=100_000, deadline_seconds=10**9)
    first: dict[str, dict[str, Any]] = {}
    for plan in (a, b, a):
        step = roll_out(cluster, plan, rules)
        assert step.refusal is None
        cluster.settle()
        assert cluster.look(plan, rules).commands == ()
        cluster.before = plan
        first = first or cluster.rendered()
    assert cluster.rendered() == first
    assert cluster.undrained == []
    assert not [line for line in cluster.log if line.startswith("end") and not line.endswith(" 0 requests")]


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_that_changes_half_way_is_followed_from_where_things_stand(seed: int) -> None:
    rng = random.Random(100 + seed)
    gpus = [4, 4]
    cluster = SimulatedCluster(rollout_fleet(*SIZES), gpus, rng)
    rules = RolloutRules(min_available_milli=0, drain_timeout_seconds=100_000, deadline_seconds=10**9)
    plans = [full_plan(rng, gpus) for _ in range(4)]
    roll_out(cluster, plans[0], rules)
    cluster.before = plans[0]
    for plan in plans[1:]:
        for _ in range(rng.randrange(5, 40)):
            cluster.execute(cluster.look(plan, rules).commands)
            check(cluster, [])
    assert roll_out(cluster, plans[-1], rules).complete
    assert cluster.undrained == []
    assert {name: item["spec"]["replicas"] for name, item in cluster.sets.items()} == {
        name: spec["replicas"] for name, spec in fresh(plans[-1], gpus).items()
    }


def fresh(plan: RoutingPlan, gpus: list[int]) -> dict[str, dict[str, int]]:
    """The sets of a plan that nothing was in the way of."""
    cluster = SimulatedCluster(rollout_fleet(*SIZES), gpus, random.Random(0))
    rules = RolloutRules(0, 100_000, 10**9)
    assert roll_out(cluster, plan, rules).complete
    return cluster.rendered()


@pytest.mark.parametrize("seed", range(8))
def test_every_class_keeps_its_floor_or_the_rollout_says_that_it_cannot(seed: int) -> None:
    rng = random.Random(400 + seed)
    gpus = [4, 4]
    classes = {"chat": ["tp1", "tp2"], "code": ["tp4"]}
    cluster = SimulatedCluster(rollout_fleet(*SIZES), gpus, rng)
    a, b = full_plan(rng, gpus, classes), full_plan(rng, gpus, classes)
    rules = RolloutRules(rng.choice((500, 700, 900)), drain_timeout_seconds=100_000, deadline_seconds=10**9)
    roll_out(cluster, a, rules)
    cluster.before = a
    step = roll_out(cluster, b, rules)
    assert cluster.undrained == []
    assert step.complete or step.refusal is not None
    assert step.refusal is None or step.refusal.reason is ConditionReason.NO_CAPACITY_NEUTRAL_PATH


@pytest.mark.parametrize("seed", range(2))
def test_where_no_step_keeps_the_floor_nothing_is_touched(seed: int) -> None:
    rng = random.Random(200 + seed)
    cluster = SimulatedCluster(rollout_fleet(*SIZES), [4], rng)
    rules = RolloutRules(min_available_milli=500, drain_timeout_seconds=100_000, deadline_seconds=10**9)
    whole, split = rollout_plan({"tp4": ["n0"]}), rollout_plan({"tp2": ["n0", "n0"]})
    roll_out(cluster, whole, rules)
    cluster.settle()
    cluster.before, before = whole, cluster.rendered()
    step = cluster.look(split, rules)
    assert step.refusal is not None
    assert step.refusal.reason is ConditionReason.NO_CAPACITY_NEUTRAL_PATH
    assert step.commands == ()
    assert cluster.rendered() == before


@pytest.mark.parametrize("seed", range(3))
def test_pods_that_people_delete_come_back_and_the_rollout_goes_on(seed: int) -> None:
    rng = random.Random(300 + seed)
    gpus = [4, 4]
    cluster = SimulatedCluster(rollout_fleet(*SIZES), gpus, rng, scheduler_counts=True)
    rules = RolloutRules(min_available_milli=0, drain_timeout_seconds=100_000, deadline_seconds=10**9)
    a, b = full_plan(rng, gpus), full_plan(rng, gpus)
    roll_out(cluster, a, rules)
    cluster.before = a
    for _ in range(12):
        cluster.execute(cluster.look(b, rules).commands)
        staying = [name for name, pod in cluster.pods.items() if "deletionTimestamp" not in pod["metadata"]]
        if staying and rng.random() < 0.3:
            cluster.evict(rng.choice(sorted(staying)))
        for _ in range(4):
            cluster.happen()
    assert roll_out(cluster, b, rules).complete
