"""The affinity gate, and the knee that q_cap comes from."""

import numpy as np
import pytest

from kvplan_solver.cacheroute.capacity import KeyCapacity, knee, rate_weighted_tokens, warm_slots
from kvplan_solver.cacheroute.gate import AffinityState, ReuseSample, WorkRatio, affinity_state, work_ratio
from kvplan_solver.errors import InvalidInput


def reuse(gaps: list[float], tokens: list[float], **changes: float) -> ReuseSample:
    values: dict[str, float] = {"other_tokens": 100.0, "eviction_window_seconds": 60.0, **changes}
    flat = values.pop("measured_flat_hit", None)
    return ReuseSample(
        np.array(gaps),
        np.array(tokens),
        other_tokens=values["other_tokens"],
        destinations=30,
        eviction_window_seconds=values["eviction_window_seconds"],
        measured_flat_hit=flat,
    )


@pytest.mark.parametrize(
    ("value", "before", "state"),
    [
        (1.5, AffinityState.OFF, AffinityState.ON),
        (1.49, AffinityState.OFF, AffinityState.SHADOW_REPLAY),
        (1.49, AffinityState.ON, AffinityState.ON),
        (1.3, AffinityState.ON, AffinityState.ON),
        (1.3, AffinityState.UNKNOWN, AffinityState.SHADOW_REPLAY),
        (1.29, AffinityState.ON, AffinityState.OFF),
    ],
)
def test_gate_switches_with_hysteresis(value: float, before: AffinityState, state: AffinityState) -> None:
    assert affinity_state(WorkRatio(value, 0.1), before) is state


@pytest.mark.parametrize("sample", [None, reuse([1.0], [0.0], other_tokens=0.0)])
def test_without_data_the_gate_is_unknown(sample: ReuseSample | None) -> None:
    assert work_ratio(sample) is None
    assert affinity_state(None, AffinityState.ON) is AffinityState.UNKNOWN


def test_reuse_within_the_window_but_rarer_than_the_flat_revisit_gains() -> None:
    ratio = work_ratio(reuse([30.0], [900.0]))
    # two visits in 60 s over 30 destinations: (29/30)² of the tokens are computed again
    assert ratio is not None
    assert ratio.value == pytest.approx((900 * (29 / 30) ** 2 + 100) / 100)


def test_reuse_beyond_the_window_gains_nothing() -> None:
    ratio = work_ratio(reuse([1_000.0], [900.0]))
    assert ratio == WorkRatio(1.0, 0.0)


def test_key_so_hot_that_every_cache_holds_it_gains_nothing() -> None:
    ratio = work_ratio(reuse([0.01], [900.0]))
    assert ratio is not None
    assert ratio.value == pytest.approx(1.0)


def test_measured_hits_of_the_engines_replace_the_revisit_model() -> None:
    ratio = work_ratio(reuse([30.0], [900.0], measured_flat_hit=0.5))
    assert ratio is not None
    assert ratio.value == pytest.approx((450 + 100) / 100)


def test_margin_shows_what_an_eviction_window_off_by_a_quarter_would_change() -> None:
    ratio = work_ratio(reuse([70.0], [900.0]))
    assert ratio is not None
    # at 75 s the prefix survives its 70 s gap: one visit, 29/30 of the tokens computed again by a flat balancer
    assert ratio.margin == pytest.approx((900 * 29 / 30 + 100) / 100 - 1.0)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"other_tokens": float("nan")}, "other_tokens"), ({"eviction_window_seconds": -1.0}, "eviction")],
)
def test_sample_that_makes_no_sense_is_refused_by_name(changes: dict[str, float], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        reuse([1.0], [1.0], **changes)


def test_sample_with_columns_of_different_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="tokens"):
        reuse([1.0, 2.0], [1.0])


def test_knee_is_where_latency_bends_upwards() -> None:
    assert knee([10, 20, 30, 40, 50], [1.0, 1.1, 1.2, 5.0, 9.0]) == 30.0


@pytest.mark.parametrize(
    ("rates", "latency"),
    [([1, 2], [1, 2]), ([1, 2, 3], [3, 2, 1]), ([1, 2, 3], [1, 5, 6]), ([1, 2, 3], [1, 2, 3])],
)
def test_curve_without_an_upward_bend_has_no_knee(rates: list[float], latency: list[float]) -> None:
    assert knee(rates, latency) is None


def test_points_out_of_order_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rates"):
        knee([2, 1, 3], [1, 2, 3])


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_cold_share_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match="cold_share"):
        KeyCapacity(10.0, share)


def test_prefix_of_no_tokens_has_no_warm_slots_to_count() -> None:
    with pytest.raises(InvalidInput, match="reusable_tokens"):
        warm_slots(1_000, 0, 0)


def test_reusable_tokens_are_weighted_by_rate() -> None:
    assert rate_weighted_tokens(np.array([100.0, 400.0]), np.array([3.0, 1.0])) == pytest.approx(175.0)
    assert rate_weighted_tokens(np.array([100.0]), np.array([0.0])) == 0.0
