"""Whatever the lengths and edges: samples of a histogram have its quantiles, to one bucket."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.model.histograms import Histogram, histogram_of
from kvplan_operator.model.series import Series
from kvplan_operator.plan.engine_flags import TOKEN_GRID

EDGES = st.lists(st.integers(1, 5_000), min_size=1, max_size=20, unique=True).map(sorted)
LENGTHS = st.lists(st.integers(1, 5_000), min_size=1, max_size=300)
LEVELS = (0.05, 0.5, 0.9, 0.99)


def observed(lengths: list[int], edges: list[int]) -> Histogram:
    """As a client counts and a server sums."""
    cumulative = [(str(edge), sum(length <= edge for length in lengths)) for edge in edges]
    cumulative.append(("+Inf", len(lengths)))
    made = histogram_of(Series({"le": edge}, float(count), 0.0) for edge, count in cumulative)
    assert made is not None
    return made


def bucket_of(length: float, edges: list[int], ceiling: int) -> tuple[float, float]:
    """Lower and upper edge of the bucket that a length is in."""
    place = int(np.searchsorted(edges, length))
    low = edges[place - 1] if place else 0
    return low, edges[place] if place < len(edges) else max(ceiling, edges[-1])


@given(LENGTHS, EDGES)
@settings(max_examples=200, deadline=None)
def test_quantiles_survive_to_one_bucket(lengths: list[int], edges: list[int]) -> None:
    ceiling = max(*lengths, edges[-1])
    samples = observed(lengths, edges).samples(ceiling).samples
    for level in LEVELS:
        true = float(np.quantile(lengths, level, method="inverted_cdf"))
        low, high = bucket_of(true, edges, ceiling)
        seen = float(np.quantile(samples, level, method="inverted_cdf"))
        assert low - 1 <= seen <= high + 1


@given(LENGTHS, EDGES)
@settings(max_examples=200, deadline=None)
def test_samples_are_as_near_as_they_say(lengths: list[int], edges: list[int]) -> None:
    made = observed(lengths, edges).samples(max(*lengths, edges[-1]))
    levels = (np.arange(5_000) + 0.5) / 5_000
    apart = np.abs(
        np.quantile(lengths, levels, method="inverted_cdf") - np.quantile(made.samples, levels, method="inverted_cdf")
    )
    assert apart.mean() <= made.error_tokens * 1.001 + 0.5


@given(LENGTHS)
@settings(max_examples=100, deadline=None)
def test_the_fleets_grid_gives_every_quantile_to_half_an_octave(lengths: list[int]) -> None:
    made = observed(lengths, list(TOKEN_GRID))
    for level in LEVELS:
        true = float(np.quantile(lengths, level, method="inverted_cdf"))
        assert true / 2 - 1 <= made.quantile(level) <= true * 2 + 1


@given(st.dictionaries(st.text(max_size=4) | st.sampled_from(["1", "2.5", "+Inf", "NaN"]), st.floats(), max_size=12))
@settings(max_examples=200, deadline=None)
def test_no_bucket_series_make_a_histogram_that_is_not_one(buckets: dict[str, float]) -> None:
    made = histogram_of(Series({"le": edge}, value, 0.0) for edge, value in buckets.items())
    if made is not None:
        assert list(made.edges) == sorted(set(made.edges))
        assert len(made.edges) == len(made.counts)
        assert min([*made.counts, made.overflow]) >= 0
