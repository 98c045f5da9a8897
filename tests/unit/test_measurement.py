"""What comes of the replies: new values, partial ones, the last good ones, and zero."""

import math
from typing import Any

import numpy as np
import pytest

from kvplan_operator.model.fleet_queries import Ask, EnginePart, RouterPart, lengths_key
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.series import Answer, Reply, Unanswered
from kvplan_operator.model.snapshot import ClassMeasured, Fact, KeyMeasured, Quality
from tests.measuring import (
    ENGINE,
    GAPS,
    NOW,
    ROUTER,
    answer,
    buckets,
    good,
    look,
    measured_class_of,
    router_pod,
    sums,
)
from tests.planning import fleet, own_pod

DOWN = Unanswered("Prometheus test: HTTP 503")


def chat(**arguments: Any) -> Fact[ClassMeasured]:
    return look(**arguments).classes["chat"]


def value(fact: Fact[ClassMeasured]) -> ClassMeasured:
    assert fact.value is not None
    return fact.value


def test_everything_of_a_class_is_measured() -> None:
    fact = chat()
    facts = value(fact).facts
    assert (fact.quality, fact.source, fact.seen, fact.detail) == (Quality.VALUE, "prometheus test", NOW - 5, "")
    assert facts.requests_per_second == 2.0
    assert facts.prompt_mean == 500.0
    assert facts.prompt_p95 == 973
    assert facts.prompt_max == 2048
    assert facts.arrival_scv == pytest.approx(1.05, abs=0.01)
    assert facts.output_lengths is not None
    assert facts.output_lengths.mean() == pytest.approx(288, abs=1)
    assert value(fact).samples == 1200


def test_latency_stands_beside_the_target() -> None:
    seen = value(chat()).latency
    assert seen is not None
    assert (seen.mean_milliseconds, seen.p50_milliseconds, seen.p99_milliseconds) == (2000, 2000, 3960)
    assert (seen.first_token_milliseconds, seen.decode_microseconds_per_token) == (100, 20_000)


def test_token_times_of_the_engines_are_shown_where_no_router_measures_response_times() -> None:
    seen = value(chat(replies=good(LATENCY=Answer()))).latency
    assert seen is not None
    assert (seen.mean_milliseconds, seen.p99_milliseconds, seen.first_token_milliseconds) == (None, None, 100)
    assert value(chat(replies=good(LATENCY=Answer(), ENGINE_SUMS=Answer()))).latency is None


def test_a_router_that_just_started_reads_as_its_rate_and_not_as_a_tenth() -> None:
    young = answer(({"class": "chat"}, NOW - 60))
    assert value(chat(replies=good(COUNTED_SINCE=young))).facts.requests_per_second == 20.0


def test_a_counter_that_began_within_a_step_of_the_window_fills_it() -> None:
    nearly = answer(({"class": "chat"}, NOW - 585))
    assert value(chat(replies=good(COUNTED_SINCE=nearly))).facts.requests_per_second == 2.0


def test_zero_traffic_is_a_value_and_lengths_are_those_last_seen() -> None:
    before = look()
    quiet = buckets(dict.fromkeys(["128", "256", "512", "+Inf"], 0.0), **{"class": "chat"})
    idle = sums(dict.fromkeys(RouterPart, 0.0), **{"class": "chat"})
    replies = good(ROUTER_SUMS=idle, OUTPUT_TOKENS=quiet, PROMPT_TOKENS=quiet, INTERARRIVAL=quiet, LATENCY=quiet)
    fact = chat(replies=replies, before=before, at=NOW + 30)
    assert fact.quality is Quality.VALUE
    assert value(fact).facts.requests_per_second == 0.0
    assert value(fact).samples == 1200
    assert value(fact).facts.prompt_mean == 500.0
    assert np.array_equal(value(fact).facts.output_lengths, value(before.classes["chat"]).facts.output_lengths)  # type: ignore[arg-type]


def test_an_idle_class_nobody_ever_saw_has_a_rate_and_no_lengths() -> None:
    idle = sums({RouterPart.ARRIVALS: 0.0}, **{"class": "chat"})
    fact = chat(replies=good(ROUTER_SUMS=idle, OUTPUT_TOKENS=Answer(), PROMPT_TOKENS=Answer()))
    assert (value(fact).facts.requests_per_second, value(fact).samples) == (0.0, 0)
    assert value(fact).facts.output_lengths is None


def arrivals(grown: float) -> Answer:
    return sums(ROUTER | {RouterPart.ARRIVALS: grown}, **{"class": "chat"})


NO_RATE: dict[str, tuple[dict[str, Reply], str]] = {
    "Prometheus is down": (dict.fromkeys(Ask, DOWN), "HTTP 503"),
    "only the sums fail": (good(ROUTER_SUMS=DOWN), "HTTP 503"),
    "only the ages fail": (good(COUNTED_SINCE=DOWN), "HTTP 503"),
    "nothing matches": (dict.fromkeys(Ask, Answer()), "start a router"),
    "no router is scraped any more": (good(ROUTERS_SEEN=Answer()), "start a router"),
    "the scrape died": (good(ROUTERS_SEEN=answer(({"pod": "router-0"}, NOW - 200))), "check the scrape"),
    "the class is not counted": (good(ROUTER_SUMS=Answer()), "no router counts requests of class chat"),
    "the rate is NaN": (good(ROUTER_SUMS=arrivals(math.nan)), "no router counts requests of class chat"),
    "the rate is infinite": (good(ROUTER_SUMS=arrivals(math.inf)), "no router counts requests of class chat"),
    "the counter has no age": (good(COUNTED_SINCE=Answer()), "no router counts requests of class chat"),
    "the counter is young and nobody came yet": (
        good(ROUTER_SUMS=arrivals(0), COUNTED_SINCE=answer(({"class": "chat"}, NOW - 30))),
        "no router counts requests of class chat",
    ),
}


@pytest.mark.parametrize(("replies", "words"), NO_RATE.values(), ids=NO_RATE.keys())
def test_without_a_rate_the_last_good_value_stays_with_its_time_and_the_reason(
    replies: dict[str, Reply], words: str
) -> None:
    before = look()
    fact = chat(replies=replies, before=before, at=NOW + 30)
    assert (fact.quality, fact.seen) == (Quality.STALE, NOW - 5)
    assert words in fact.detail
    assert fact.value is before.classes["chat"].value


@pytest.mark.parametrize(("replies", "words"), NO_RATE.values(), ids=NO_RATE.keys())
def test_without_a_rate_and_without_a_past_there_is_no_data(replies: dict[str, Reply], words: str) -> None:
    fact = chat(replies=replies)
    assert (fact.value, fact.quality) == (None, Quality.NO_DATA)
    assert words in fact.detail


def test_a_stale_value_that_comes_back_is_plain_again() -> None:
    stale = look(dict.fromkeys(Ask, DOWN), before=look(), at=NOW + 30)
    assert chat(before=stale, at=NOW + 60).quality is Quality.VALUE


def test_a_value_that_stays_away_stays_stale_since_it_was_true() -> None:
    measured = look()
    for step in range(1, 4):
        measured = look(dict.fromkeys(Ask, DOWN), before=measured, at=NOW + 30 * step)
    assert measured.classes["chat"].age_seconds(NOW + 90) == 95.0


def test_a_counter_that_shrank_is_no_negative_rate() -> None:
    assert value(chat(replies=good(ROUTER_SUMS=arrivals(-5.0)))).facts.requests_per_second == 0.0


def warned(*words: str) -> Answer:
    return Answer(arrivals(1200.0).series, words)


PARTIAL: dict[str, tuple[dict[str, Reply], list[Any], str]] = {
    "a store did not answer": (good(ROUTER_SUMS=warned("one store is away")), [], "one store is away"),
    "a live router is not seen": (good(), [router_pod("router-1")], "no recent sample of router router-1"),
    "several are not seen": (good(), [router_pod(f"r-{n}") for n in range(5)], "router r-0, r-1, r-2 and 2 more"),
    "lengths are not answered": (good(OUTPUT_TOKENS=DOWN), [], "HTTP 503"),
}


@pytest.mark.parametrize(("replies", "more", "words"), PARTIAL.values(), ids=PARTIAL.keys())
def test_what_lacks_a_part_says_so(replies: dict[str, Reply], more: list[Any], words: str) -> None:
    fact = chat(replies=replies, pods=[own_pod("engine-0", gpus=1), router_pod(), *more])
    assert fact.quality is Quality.PARTIAL
    assert words in fact.detail
    assert value(fact).facts.requests_per_second == 2.0


WHOLE: dict[str, list[Any]] = {
    "a router that became Ready a minute ago": [router_pod("router-1", since="1970-01-12T13:45:40Z")],
    "a router that is not Ready": [router_pod("router-1", conditions=[{"type": "Ready", "status": "False"}])],
    "a router of another namespace": [{**router_pod("router-1"), "metadata": {"name": "x", "namespace": "other"}}],
}


@pytest.mark.parametrize("more", WHOLE.values(), ids=WHOLE.keys())
def test_what_cannot_be_seen_yet_is_not_missed(more: list[Any]) -> None:
    assert chat(pods=[own_pod("engine-0", gpus=1), router_pod(), *more]).quality is Quality.VALUE


def test_series_without_the_label_pod_tell_no_missing_router() -> None:
    unlabelled = answer(({}, NOW - 1))
    fact = chat(replies=good(ROUTERS_SEEN=unlabelled), pods=[router_pod("router-1")])
    assert fact.quality is Quality.VALUE


def test_one_query_without_answer_is_waited_out_before_a_value_lacks_its_part() -> None:
    failing = good(PROMPT_TOKENS=DOWN, ROUTER_SUMS=arrivals(2400.0))
    measured, seen = look(), []
    for seconds in (30, 60, 90, 120):
        failing[Ask.ROUTERS_SEEN] = answer(({"pod": "router-0"}, NOW))
        measured = look(failing, before=measured, at=NOW + seconds)
        fact = measured.classes["chat"]
        seen.append((fact.quality, value(fact).facts.requests_per_second))
    assert seen == [
        (Quality.STALE, 2.0),
        (Quality.STALE, 2.0),
        (Quality.PARTIAL, 4.0),
        (Quality.PARTIAL, 4.0),
    ]
    assert value(measured.classes["chat"]).facts.prompt_mean == 500.0


def test_an_automatic_radius_grows_when_lengths_drift() -> None:
    auto = fleet(uncertainty={"radius": {"auto": True}})
    shorter = buckets({"64": 600.0, "128": 1200.0, "+Inf": 1200.0}, **{"class": "chat"})
    still = value(chat(replies=good(OUTPUT_TOKENS_BEFORE=good()[Ask.OUTPUT_TOKENS]), of=auto)).facts
    moved = value(chat(replies=good(OUTPUT_TOKENS_BEFORE=shorter), of=auto)).facts
    assert still.suggested_radius_tokens is not None
    assert moved.suggested_radius_tokens is not None
    assert moved.suggested_radius_tokens > still.suggested_radius_tokens + 150
    assert value(chat()).facts.suggested_radius_tokens is None


def test_a_class_reads_the_histogram_it_names() -> None:
    named = measured_class_of(outputLengths={"prometheus": {"metric": "mine", "matchLabels": {"app": "x"}}})
    replies = good() | {lengths_key("chat"): buckets({"64": 40.0, "+Inf": 40.0})}
    seen = value(chat(replies=replies, classes=[named]))
    assert seen.samples == 40
    assert seen.facts.output_lengths is not None
    assert seen.facts.output_lengths.max() <= 64


def test_prompts_beyond_the_edges_have_no_maximum() -> None:
    long = buckets({"256": 0, "512": 600, "+Inf": 1200}, **{"class": "chat"})
    facts = value(chat(replies=good(PROMPT_TOKENS=long))).facts
    assert (facts.prompt_mean, facts.prompt_p95, facts.prompt_max) == (500.0, None, None)


STREAMS = {
    "one router sees all": (GAPS, 1.0, 1.051),
    "two routers see half each of a bursty stream": (GAPS, 0.5, 1.103),
    "one router sees a smooth stream": ({"0.1": 0.0, "0.4": 0.0, "0.6": 1200.0, "+Inf": 1200.0}, 1.0, 0.013),
    "two routers that are dealt in turn count as Poisson": (
        {"0.1": 0.0, "0.4": 0.0, "0.6": 1200.0, "+Inf": 1200.0},
        0.5,
        1.0,
    ),
}


@pytest.mark.parametrize(("gaps", "share", "expected"), STREAMS.values(), ids=STREAMS.keys())
def test_burstiness_is_that_of_all_routers_together(gaps: dict[str, float], share: float, expected: float) -> None:
    rate, seen = arrivals(1200.0 / share), buckets(gaps, **{"class": "chat"})
    facts = value(chat(replies=good(ROUTER_SUMS=rate, INTERARRIVAL=seen))).facts
    assert facts.arrival_scv == pytest.approx(expected, abs=0.001)


UNTOLD: dict[str, dict[str, float]] = {
    "too few arrivals": {edge: count / 20 for edge, count in GAPS.items()},
    "gaps below the first edge": {"1": 1200.0, "+Inf": 1200.0},
    "only an overflow": {"+Inf": 1200.0},
}


@pytest.mark.parametrize("gaps", UNTOLD.values(), ids=UNTOLD.keys())
def test_buckets_that_show_no_variation_tell_no_burstiness(gaps: dict[str, float]) -> None:
    assert value(chat(replies=good(INTERARRIVAL=buckets(gaps, **{"class": "chat"})))).facts.arrival_scv is None


def test_keys_are_ranked_by_what_is_certain_of_them() -> None:
    rows = {"aa": (600, 290), "bb": (400, 0), "cc": (500, 251), "zz": (0, 0)}
    counts = [({"class": "chat", "key": name * 8}, float(count)) for name, (count, _) in rows.items()]
    errors = [({"class": "chat", "key": name * 8}, float(error)) for name, (_, error) in rows.items()]
    fact = look(good(KEY_REQUESTS=answer(*counts), KEY_ERRORS=answer(*errors))).keys
    assert fact is not None
    assert fact.quality is Quality.VALUE
    assert fact.value == (
        KeyMeasured("chat", 0xBBBBBBBBBBBBBBBB, 400 / 600, 0.0),
        KeyMeasured("chat", 0xAAAAAAAAAAAAAAAA, 1.0, 290 / 600),
    )


def test_labels_that_are_no_hash_and_foreign_classes_are_no_keys() -> None:
    rows = [({"class": "chat", "key": "tenant-a"}, 9.0), ({"class": "other", "key": "a" * 16}, 9.0), ({}, 9.0)]
    fact = look(good(KEY_REQUESTS=answer(*rows))).keys
    assert fact is not None
    assert fact.value == ()


@pytest.mark.parametrize("reply", [DOWN, Answer()], ids=["not answered", "not counted yet"])
def test_without_counts_the_last_keys_stay(reply: Reply) -> None:
    fact = look(good(KEY_REQUESTS=reply), before=look()).keys
    assert fact is not None
    assert fact.quality is Quality.STALE
    assert [key.key for key in fact.value or ()] == [255]


def test_reuse_gaps_are_tokens_per_bucket_without_those_beyond_the_last_edge() -> None:
    fact = look().reuse_gap
    assert fact is not None
    assert fact.value == ((1.0, 10.0), (10.0, 20.0))


def test_a_configuration_is_calibrated_from_its_own_engines() -> None:
    other = answer(*(({"pod": "foreign", "part": part}, 1e9) for part in EnginePart))
    both = Answer((*good()[Ask.ENGINE_SUMS].series, *other.series))  # type: ignore[union-attr]
    found = look(good(ENGINE_SUMS=both)).configurations
    assert found["tp1"].value == Measurement(512, 0.0001, 0.02, 4.0)
    assert (found["tp2"].value, found["tp2"].quality) == (None, Quality.NO_DATA)
    assert "no engine of it runs" in found["tp2"].detail


TOO_LITTLE: dict[str, tuple[dict[str, float], Measurement]] = {
    "few requests": ({EnginePart.PREFILLS: 29.0}, Measurement(512, None, 0.02, 4.0)),
    "few prompt tokens": ({EnginePart.PREFILL_TOKENS: 1999.0}, Measurement(512, None, 0.02, 4.0)),
    "few output tokens": ({EnginePart.TOKEN_GAPS: 999.0}, Measurement(512, 0.0001, None, 4.0)),
    "no time passed": ({EnginePart.PREFILL_SECONDS: 0.0}, Measurement(512, None, 0.02, 4.0)),
    "NaN": ({EnginePart.TOKEN_SECONDS: math.nan}, Measurement(512, 0.0001, None, 4.0)),
    "all prompts were cached": ({EnginePart.PREFILL_TOKENS: 0.0}, Measurement(512, None, 0.02, 4.0)),
}


@pytest.mark.parametrize(("parts", "expected"), TOO_LITTLE.values(), ids=TOO_LITTLE.keys())
def test_too_little_leaves_the_prior(parts: dict[str, float], expected: Measurement) -> None:
    found = look(good(ENGINE_SUMS=sums(ENGINE | parts, pod="engine-0"))).configurations["tp1"]
    assert (found.value, found.quality) == (expected, Quality.VALUE)


def test_a_decode_speed_of_before_keeps_the_batch_it_was_measured_at() -> None:
    prefills_only = sums(ENGINE | {EnginePart.TOKEN_GAPS: 0.0}, pod="engine-0")
    later = good(ENGINE_SUMS=prefills_only, ENGINE_BATCHES=answer(({"pod": "engine-0"}, 9.0)))
    assert look(later, before=look()).configurations["tp1"].value == Measurement(512, 0.0001, 0.02, 4.0)


def test_the_radius_is_estimated_once_per_period() -> None:
    auto = fleet(uncertainty={"radius": {"auto": True}})
    moved = good(OUTPUT_TOKENS=buckets({"64": 600.0, "128": 1200.0, "+Inf": 1200.0}, **{"class": "chat"}))
    at = 3_000_000.0
    first = look(of=auto, at=at + 10)
    soon, late = (look(moved, of=auto, before=first, at=at + seconds) for seconds in (40, 310))
    radii = [value(one.classes["chat"]).facts.suggested_radius_tokens for one in (first, soon, late)]
    assert radii[0] == radii[1] != radii[2]


def test_an_idle_window_makes_no_engine_slower() -> None:
    idle = look(good(ENGINE_SUMS=Answer()), before=look()).configurations["tp1"]
    assert idle.value == Measurement(512, 0.0001, 0.02, 4.0)


def test_the_least_capacity_of_a_configuration_counts() -> None:
    def cache(pod: str, blocks: str) -> tuple[dict[str, str], float]:
        return {"pod": pod, "engine": "0", "num_gpu_blocks": blocks, "block_size": "16"}, 1.0

    pods = [own_pod("engine-0", gpus=1), own_pod("engine-1", gpus=1), own_pod("engine-2", gpus=1)]
    caches = answer(cache("engine-0", "101"), cache("engine-1", "91"), cache("engine-2", "None"))
    found = look(good(ENGINE_CACHES=caches), pods=pods).configurations["tp1"].value
    assert found is not None
    assert found.kv_capacity_tokens == 90 * 16


def test_engines_finish_what_their_counters_say() -> None:
    fact = look().engine_finish_rate
    assert fact is not None
    assert (fact.value, fact.quality) == (2.0, Quality.VALUE)


def test_without_engines_nothing_finishes() -> None:
    fact = look(pods=[]).engine_finish_rate
    assert fact is not None
    assert (fact.value, fact.quality) == (0.0, Quality.VALUE)


def test_engines_that_are_not_scraped_are_no_idle_engines() -> None:
    fact = look(good(ENGINE_SUMS=Answer())).engine_finish_rate
    assert fact is not None
    assert (fact.value, fact.quality) == (None, Quality.NO_DATA)


def test_the_routers_rate_holds_requests_of_no_class_too() -> None:
    unmatched = sums({RouterPart.ARRIVALS: 300.0}, **{"class": ""})
    both = Answer((*good()[Ask.ROUTER_SUMS].series, *unmatched.series))  # type: ignore[union-attr]
    since = answer(({"class": "chat"}, NOW - 600), ({"class": ""}, NOW - 600))
    fact = look(good(ROUTER_SUMS=both, COUNTED_SINCE=since)).router_rate
    assert fact is not None
    assert fact.value == 2.5
