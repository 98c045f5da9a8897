"""Counters, hot keys and reuse gaps."""

from itertools import pairwise
from random import Random

import pytest

from kvplan_router.core.decide import Router
from kvplan_router.core.histogram import Histogram
from kvplan_router.core.measure import ClassMeter
from kvplan_router.core.reuse import ReuseGaps
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.sketch import HotKeys, SpaceSaving
from kvplan_router.core.values import Outcome, Usage
from tests.unit.router_world import SECRET, document, picked, request, request_class, router, table


def test_a_histogram_counts_at_or_below_each_bound() -> None:
    histogram = Histogram((1, 10))
    for value in (0, 1, 2, 10, 11):
        histogram.observe(value)
    assert histogram.values().counts == (2, 2, 1)
    assert histogram.values().total == 24


def test_the_outcomes_are_those_of_the_contract() -> None:
    assert [o.value for o in Outcome] == [
        "planned", "backup", "cold", "subset", "waited", "shed", "unplanned", "error",
    ]  # fmt: skip


def test_lengths_follow_the_fleets_grid_and_go_on_when_it_stays() -> None:
    made = router()
    made.finish(picked(made.decide(request())).ticket, Usage(300, 20))
    made.install(*table(document(generation=2)))
    assert made.measurements().classes["chat"].prompt_tokens.counts == (0, 0, 1, 0)
    made.install(*table(document(generation=3, grids={"promptTokens": [512]})))
    prompt = made.measurements().classes["chat"].prompt_tokens
    assert (prompt.bounds, prompt.counts) == ((512,), (0, 0))


def test_gaps_between_arrivals_are_counted_on_the_fleets_grid() -> None:
    made = router(document(grids={"interarrivalMicroseconds": [1_000, 1_000_000]}))
    for now in (5.0, 5.0005, 6.0, 9.0):
        made.decide(request(now=now))
    assert made.measurements().classes["chat"].interarrival_seconds.counts == (1, 1, 1)


def test_latencies_run_from_the_arrival_to_an_end_that_was_seen_on_the_fleets_grid() -> None:
    made = router(document(grids={"latencyMilliseconds": [100, 2_000]}))
    for now in (5.05, 6.0, 9.0, None):
        made.finish(picked(made.decide(request(now=5.0))).ticket, now=now)
    latency = made.measurements().classes["chat"].latency_seconds
    assert (latency.bounds, latency.counts) == ((0.1, 2.0), (1, 1, 1))
    assert latency.total == pytest.approx(0.05 + 1.0 + 4.0)


def test_a_clock_that_steps_back_counts_as_no_gap() -> None:
    meter = ClassMeter()
    meter.arrived(5.0)
    meter.arrived(4.0)
    assert meter.values().interarrival_seconds.total == 0.0


def test_every_arrival_before_a_table_counts_as_unplanned() -> None:
    bare = Router(SECRET, CoreSettings(), Random(0))
    bare.decide(request("t"))
    assert bare.measurements().classes["(unmatched)"].outcomes[Outcome.UNPLANNED] == 1
    assert bare.state().mode == "none"


def test_a_sketch_never_underestimates_and_bounds_its_error() -> None:
    rng, sketch, truth = Random(7), SpaceSaving(50), dict[int, int]()
    for _ in range(20_000):
        key = int(rng.paretovariate(0.6)) % 5_000
        truth[key] = truth.get(key, 0) + 1
        sketch.add(key)
    hot = [key for key, count in truth.items() if count > 20_000 / 50]
    held = sketch.counts()
    assert set(hot) <= set(held)
    for key, (count, error) in held.items():
        assert count - error <= truth[key] <= count


def test_a_counter_starts_when_its_key_enters_and_counts_truly() -> None:
    keys = HotKeys(10)
    for tail in range(100, 100 + 9):
        keys.add(tail, "chat")
    for _ in range(50):
        keys.add(1, "chat")
    assert 1 not in {count.key for count in keys.values()}  # no place was left
    keys.review()
    for _ in range(7):
        keys.add(1, "chat")
    assert next(count.arrivals for count in keys.values() if count.key == 1) == 7


def test_the_counted_set_is_bounded_and_its_edge_does_not_flicker() -> None:
    rng, keys = Random(3), HotKeys(20)
    sets = []
    for _ in range(30):
        for _ in range(2_000):
            keys.add(int(rng.paretovariate(0.9)), "chat")
        keys.review()
        sets.append({count.key for count in keys.values()})
    assert max(map(len, sets)) <= 20
    moved = [len(before ^ after) for before, after in pairwise(sets[5:])]
    assert sum(moved) / len(moved) < 6


def test_a_flood_of_new_keys_does_not_throw_out_the_hot_ones() -> None:
    keys = HotKeys(10)
    for n in range(5_000):
        keys.add(n % 5, "chat")
        keys.add(1_000_000 + n, "chat")
        if n % 500 == 499:
            keys.review()
    assert set(range(5)) <= {count.key for count in keys.values()}


def test_reuse_gaps_are_weighted_by_tokens() -> None:
    gaps = ReuseGaps(10)
    gaps.asked(1, 500, 0.0)
    gaps.asked(1, 500, 0.15)
    values = gaps.values()
    assert values.first_tokens == 500
    assert values.gaps.counts[1] == 500


def test_the_key_longest_not_asked_for_is_forgotten_first() -> None:
    gaps = ReuseGaps(2)
    for key, now in ((1, 0.0), (2, 1.0), (1, 2.0), (3, 3.0), (2, 4.0), (1, 5.0)):
        gaps.asked(key, 1, now)
    assert gaps.values().first_tokens == 5  # 2 was forgotten for 3, and 1 for 2


def test_without_a_planned_prefix_the_mean_prompt_weighs_a_reuse() -> None:
    made = router(document(classes=[request_class(cachedPrefixTokens=0)]))
    made.finish(picked(made.decide(request("t"))).ticket, Usage(300, 20))
    made.decide(request("t", now=1.0))
    reuse = made.measurements().reuse
    assert (reuse.first_tokens, sum(reuse.gaps.counts)) == (0, 300)
