"""A fitted workload says what the requests did, and says so where it cannot know."""

import numpy as np
import pytest

from kvplan_operator.model.arrivals import measure_arrivals
from kvplan_operator.model.fitting import FitOptions, fit_distribution, fit_trace
from kvplan_operator.model.lengths import LengthSamples, compact_lengths, lengths_from_quantiles
from kvplan_operator.model.prefixes import key_rates, keyed_by_blocks, shared_prefix
from kvplan_operator.model.trace import Floats, PrefixBlocks, RequestTrace
from kvplan_operator.model.workload import Published
from kvplan_solver.errors import InvalidInput
from kvplan_solver.radius import wasserstein_1


def blocks(*rows: list[int], tokens: int = 16) -> PrefixBlocks:
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return PrefixBlocks(offsets, np.array([block for row in rows for block in row], dtype=np.int64), tokens)


def trace(outputs: list[float], **facts: object) -> RequestTrace:
    return RequestTrace("chat", np.array(outputs, float), **facts)  # type: ignore[arg-type]


def poisson(rate: float, count: int, seed: int = 0) -> Floats:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


class TestArrivals:
    def test_n_requests_over_the_observed_time_are_the_rate(self) -> None:
        measured = measure_arrivals(np.array([0.0, 1.0, 2.0, 3.0]), 1)
        assert measured is not None
        assert (measured.requests_per_second, measured.window_seconds) == (1.0, 4.0)

    def test_even_gaps_have_no_variability_and_poisson_has_one(self) -> None:
        even = measure_arrivals(np.arange(1_000) / 8, 4)
        random = measure_arrivals(poisson(5.0, 20_000), 4)
        assert even is not None
        assert random is not None
        assert even.scv == pytest.approx(0, abs=1e-9)
        assert random.scv == pytest.approx(1, abs=0.05)
        assert random.window_scv_median == pytest.approx(1, abs=0.08)

    def test_one_flash_crowd_moves_the_overall_figure_and_not_the_median_of_windows(self) -> None:
        crowd = np.sort(np.concatenate((poisson(1.0, 8_000), 4_000 + poisson(4_000.0, 8_000))))
        measured = measure_arrivals(crowd, 8)
        assert measured is not None
        assert measured.scv is not None
        assert measured.scv > 2
        assert measured.window_scv_median == pytest.approx(1, abs=0.15)

    def test_window_rates_follow_the_load(self) -> None:
        doubled = np.concatenate((np.arange(100) / 1.0, 100 + np.arange(200) / 2.0))
        measured = measure_arrivals(doubled, 2)
        assert measured is not None
        assert measured.window_rates == pytest.approx((1.0, 2.0), rel=0.01)

    def test_a_coarse_grid_is_found_and_its_poisson_counts_still_give_one(self) -> None:
        stamps = np.floor(poisson(4.0, 20_000) / 3.0) * 3.0
        measured = measure_arrivals(stamps, 4)
        assert measured is not None
        assert measured.grid_seconds == pytest.approx(3.0)
        assert measured.scv == pytest.approx(1, abs=0.05)
        assert "3 s grid" in measured.note

    def test_a_grid_with_a_gap_of_years_needs_no_memory_for_it(self) -> None:
        stamps = np.repeat([0.0, 1e-3, 2e-3, 3e-3, 1e9], 100)
        measured = measure_arrivals(stamps, 2)
        assert measured is not None
        assert measured.grid_seconds == pytest.approx(1e-3)

    def test_fine_stamps_with_a_few_ties_are_no_grid(self) -> None:
        stamps = np.round(poisson(20.0, 5_000), 3)
        measured = measure_arrivals(stamps, 4)
        assert measured is not None
        assert measured.grid_seconds == 0

    @pytest.mark.parametrize("stamps", [[5.0], [5.0, 5.0, 5.0]], ids=["one request", "one stamp"])
    def test_a_single_stamp_tells_no_rate(self, stamps: list[float]) -> None:
        assert measure_arrivals(np.array(stamps), 4) is None


class TestPrefixes:
    def test_the_shared_prefix_is_what_nearly_all_requests_begin_with(self) -> None:
        found = shared_prefix(blocks([1, 2, 3], [1, 2, 4], [1, 2], [1, 2, 5, 6]))
        assert (found.tokens, found.covered) == (32, 1.0)

    def test_the_required_share_decides_how_deep_it_goes(self) -> None:
        rows = [[1, 2, 3]] * 7 + [[1, 9]] * 2 + [[8]]
        assert shared_prefix(blocks(*rows), 0.9).tokens == 16
        assert shared_prefix(blocks(*rows), 0.7).tokens == 48
        assert shared_prefix(blocks(*rows), 1.0).tokens == 0

    def test_the_same_block_after_another_beginning_is_not_shared(self) -> None:
        assert shared_prefix(blocks([1, 5], [2, 5], [3, 5]), 0.9).tokens == 0

    def test_requests_without_blocks_share_nothing(self) -> None:
        assert shared_prefix(blocks([], [], [1])).tokens == 0

    def test_keys_are_the_leading_blocks_and_short_prompts_have_none(self) -> None:
        keyed = keyed_by_blocks(trace([1] * 4, blocks=blocks([1, 2, 9], [1, 2], [1, 3, 4], [1])), 2)
        rates = key_rates(keyed, window_seconds=2.0)
        assert rates is not None
        assert rates.names == ("1-2", "1-3")
        assert rates.requests_per_second.tolist() == [1.0, 0.5]
        assert rates.error_per_second.tolist() == pytest.approx([2**0.5 / 2, 0.5])
        assert rates.keyless_requests == 1

    def test_equal_rates_are_ordered_by_name(self) -> None:
        rates = key_rates(trace([1] * 4, keys=np.array([2, 0, 1, 2]), key_names=("b", "a", "z")), 1.0)
        assert rates is not None
        assert rates.names == ("z", "a", "b")
        assert rates.reusable_tokens is None

    def test_reusable_tokens_are_what_successive_requests_of_a_key_have_in_common(self) -> None:
        rows = blocks([1, 2, 3, 4], [7, 8], [1, 2, 3], [1, 2, 9], [7])
        rates = key_rates(trace([1] * 5, blocks=rows, keys=np.array([0, 1, 0, 0, 1]), key_names=("a", "b")), 1.0)
        assert rates is not None
        assert rates.reusable_tokens is not None
        assert rates.reusable_tokens.tolist() == [(3 + 2) / 2 * 16, 16]

    def test_a_key_seen_once_can_reuse_the_blocks_that_make_it(self) -> None:
        rates = key_rates(keyed_by_blocks(trace([1, 1], blocks=blocks([1, 2, 3], [4, 5, 6])), 2), 1.0)
        assert rates is not None
        assert rates.reusable_tokens is not None
        assert rates.reusable_tokens.tolist() == [32, 32]


class TestLengths:
    def test_few_samples_stay_as_they_are(self) -> None:
        kept = compact_lengths(np.array([5.0, 1.0]), 10)
        assert (kept.samples.tolist(), kept.error_tokens) == ([1, 5], 0)

    def test_compaction_keeps_mid_quantiles_and_states_the_exact_error(self) -> None:
        samples = np.arange(1, 101, dtype=float)
        kept = compact_lengths(samples, 10)
        assert kept.samples.tolist() == [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]
        assert kept.error_tokens == wasserstein_1(kept.samples, samples) == pytest.approx(2.5)

    def test_a_quantile_table_without_a_minimum_starts_at_0(self) -> None:
        made = lengths_from_quantiles([0.5, 1.0], [10, 20], 4)
        assert made.samples.tolist() == pytest.approx([2, 8, 12, 18], abs=0.51)

    @pytest.mark.parametrize("points", [0, -1, 10**9])
    def test_no_points_and_too_many_are_refused(self, points: int) -> None:
        with pytest.raises(InvalidInput, match="max_points"):
            compact_lengths(np.array([1.0]), points)


WRONG_OPTIONS: dict[str, dict[str, float]] = {
    "no windows": {"windows": 0},
    "more windows than memory": {"windows": 10**9},
    "a share of nothing": {"shared_by": 0.0},
    "more than all": {"shared_by": 1.5},
    "keys of no blocks": {"key_blocks": 0},
    "a rate of 0": {"requests_per_second": 0.0},
    "an endless rate": {"requests_per_second": float("inf")},
    "a maximum of 0": {"max_output_tokens": 0},
}


WRONG_TRACES: dict[str, tuple[dict[str, object], list[float], str]] = {
    "no requests": ({}, [], "holds no request"),
    "a NaN length": ({}, [1.0, float("nan")], "NaN"),
    "unsorted times": ({"arrival_seconds": np.array([2.0, 1.0])}, [1, 2], "out of order"),
    "a prompt too few": ({"prompt_tokens": np.array([2.0])}, [1, 2], "one value per request"),
    "a negative prompt": ({"prompt_tokens": np.array([2.0, -1.0])}, [1, 2], "negative"),
}


class TestFit:
    def test_a_full_trace_is_measured_in_every_respect(self) -> None:
        count = 4_000
        rng = np.random.default_rng(1)
        made = trace(
            np.round(rng.exponential(100, count)).tolist(),
            arrival_seconds=poisson(2.0, count),
            prompt_tokens=np.full(count, 100.0),
            blocks=blocks(*([[0, n % 50] for n in range(count)])),
        )
        fitted = fit_trace(made, FitOptions())
        assert fitted.requests_per_second == pytest.approx(2.0, rel=0.05)
        assert fitted.arrival_scv == pytest.approx(1.0, abs=0.1)
        assert fitted.prefix is not None
        assert fitted.prefix.tokens == 16
        assert fitted.keys is not None
        assert len(fitted.keys.names) == 50
        assert fitted.keys.requests_per_second.sum() == pytest.approx(fitted.requests_per_second)
        assert fitted.prompt is not None
        assert (fitted.prompt.mean, fitted.prompt.p95, fitted.prompt.maximum) == (100, 100, 100)
        assert fitted.radius.drift_tokens < 10

    def test_a_trace_without_times_has_no_rate_and_says_so(self) -> None:
        fitted = fit_trace(trace([1, 2, 3]), FitOptions())
        assert fitted.requests_per_second is None
        assert fitted.arrival_scv is None
        assert fitted.radius.window_distances == ()
        assert any("the rate stays unknown" in note for note in fitted.notes)

    def test_a_stated_rate_is_poisson_and_said_to_be_stated(self) -> None:
        fitted = fit_trace(trace([1, 2, 3]), FitOptions(requests_per_second=0.5))
        assert (fitted.requests_per_second, fitted.arrival_scv, fitted.window_seconds) == (0.5, 1.0, 6.0)
        assert any("stated, not measured" in note for note in fitted.notes)

    def test_a_stated_rate_beats_the_measured_one_and_scales_the_keys(self) -> None:
        made = trace([1] * 100, arrival_seconds=np.arange(100.0), keys=np.zeros(100, int), key_names=("a",))
        fitted = fit_trace(made, FitOptions(requests_per_second=3.0))
        assert fitted.keys is not None
        assert fitted.keys.requests_per_second.tolist() == pytest.approx([3.0])
        assert any("replaces the measured 1 per second" in note for note in fitted.notes)

    def test_lengths_above_a_stated_maximum_are_clipped_and_counted(self) -> None:
        fitted = fit_trace(trace([5, 50, 500]), FitOptions(max_output_tokens=40))
        assert fitted.output_lengths.samples.tolist() == [5, 40, 40]
        assert fitted.max_output_tokens == 40
        assert any(note.startswith("2 lengths") for note in fitted.notes)

    def test_outputs_of_0_tokens_still_leave_a_maximum_of_one(self) -> None:
        assert fit_trace(trace([0, 0]), FitOptions()).max_output_tokens == 1

    def test_the_shared_prefix_is_never_longer_than_the_mean_prompt(self) -> None:
        made = trace([1, 1], prompt_tokens=np.array([10.0, 12.0]), blocks=blocks([1], [1]))
        fitted = fit_trace(made, FitOptions())
        assert fitted.prefix is not None
        assert fitted.prefix.tokens == 11

    def test_a_published_distribution_has_its_resolution_as_radius(self) -> None:
        source = Published(LengthSamples(np.array([1.0, 9.0]), 4.0, "3 quantiles"), 6.0, 12)
        fitted = fit_distribution("chat", source, FitOptions(requests_per_second=2.0))
        assert (fitted.radius.tokens, fitted.output_mean, fitted.max_output_tokens) == (4.0, 6.0, 12)
        assert fitted.sample_count == 0
        assert any("the published mean is 6 tokens, that of the samples 5" in note for note in fitted.notes)

    @pytest.mark.parametrize("case", WRONG_OPTIONS, ids=list(WRONG_OPTIONS))
    def test_wrong_options_are_refused_by_name(self, case: str) -> None:
        wrong = WRONG_OPTIONS[case]
        with pytest.raises(InvalidInput, match=f"fit: {next(iter(wrong))} is"):
            FitOptions(**wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize("case", WRONG_TRACES, ids=list(WRONG_TRACES))
    def test_arrays_that_are_no_trace_are_refused(self, case: str) -> None:
        facts, outputs, problem = WRONG_TRACES[case]
        with pytest.raises(InvalidInput, match=problem):
            trace(outputs, **facts)
