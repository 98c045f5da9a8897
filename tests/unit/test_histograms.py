"""Histograms as they come: incomplete, falling, mixed, empty."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from kvplan_operator.model.histograms import Histogram, histogram_of
from kvplan_operator.model.series import Series
from kvplan_operator.model.trace import Floats
from kvplan_solver.errors import InvalidInput

EMPTY = Histogram((1.0, 2.0), (0.0, 0.0))


def read(cumulative: Mapping[str, float]) -> Histogram | None:
    return histogram_of(Series({"le": edge}, count, 0.0) for edge, count in cumulative.items())


READ: dict[str, tuple[dict[str, float], Histogram | None]] = {
    "as it should be": ({"1": 2, "2": 5, "+Inf": 6}, Histogram((1.0, 2.0), (2.0, 3.0), 1.0)),
    "edges in any order": ({"+Inf": 6, "2": 5, "1": 2}, Histogram((1.0, 2.0), (2.0, 3.0), 1.0)),
    "text order is not number order": ({"10": 5, "9": 2, "+Inf": 5}, Histogram((9.0, 10.0), (2.0, 3.0))),
    "one edge written in two ways": ({"1": 2, "1.0": 3, "+Inf": 5}, Histogram((1.0,), (5.0,))),
    "counts that fall are raised": ({"1": 4, "2": 3, "+Inf": 6}, Histogram((1.0, 2.0), (4.0, 0.0), 2.0)),
    "the total is less than a bucket": ({"1": 4, "+Inf": 3}, Histogram((1.0,), (4.0,))),
    "a bucket is NaN": ({"1": math.nan, "2": 5, "+Inf": 6}, Histogram((2.0,), (5.0,), 1.0)),
    "the total is infinite": ({"1": 2, "+Inf": math.inf}, Histogram((1.0,), (2.0,))),
    "a reset left a negative count": ({"1": -2, "2": 5, "+Inf": 5}, Histogram((2.0,), (5.0,))),
    "no +Inf": ({"1": 2, "2": 5}, Histogram((1.0, 2.0), (2.0, 3.0))),
    "only +Inf": ({"+Inf": 5}, Histogram((), (), 5.0)),
    "an edge that is no number": ({"many": 3, "1": 2, "+Inf": 2}, Histogram((1.0,), (2.0,))),
    "a negative edge": ({"-1": 3, "1": 5, "+Inf": 5}, Histogram((1.0,), (5.0,))),
    "nothing happened": ({"1": 0, "2": 0, "+Inf": 0}, EMPTY),
    "no series": ({}, None),
    "all NaN": ({"1": math.nan, "+Inf": math.nan}, None),
}


@pytest.mark.parametrize(("cumulative", "expected"), READ.values(), ids=READ.keys())
def test_buckets_become_counts(cumulative: dict[str, float], expected: Histogram | None) -> None:
    assert read(cumulative) == expected


QUANTILES = {
    "in the middle of a bucket": (0.5, 1.5),
    "at an edge": (0.25, 1.0),
    "the least": (0.0, 0.0),
    "in the overflow": (0.9, math.inf),
}


@pytest.mark.parametrize(("level", "value"), QUANTILES.values(), ids=QUANTILES.keys())
def test_quantiles_are_linear_within_a_bucket(level: float, value: float) -> None:
    assert Histogram((1.0, 2.0), (2.0, 4.0), 2.0).quantile(level) == pytest.approx(value)


@pytest.mark.parametrize(("made", "level"), [(EMPTY, 0.5), (Histogram((1.0,), (1.0,)), 1.5)])
def test_a_quantile_of_nothing_is_refused(made: Histogram, level: float) -> None:
    with pytest.raises(InvalidInput, match="histogram"):
        made.quantile(level)


def test_the_overflow_lies_between_the_last_edge_and_the_ceiling() -> None:
    made = Histogram((100.0,), (50.0,), 50.0).samples(ceiling=300)
    assert made.samples.size == 100
    assert made.samples.max() <= 300
    assert (made.samples > 100).sum() == 50


def test_edges_above_the_ceiling_come_down_to_it() -> None:
    assert Histogram((128.0, 768.0), (1.0, 99.0)).samples(ceiling=512).samples.max() <= 512


def test_few_requests_make_few_samples() -> None:
    assert Histogram((10.0,), (3.7,)).samples(ceiling=100).samples.size == 3


def test_many_requests_make_no_more_samples_than_asked_for() -> None:
    assert Histogram((10.0, 20.0), (5_000.0, 90_000.0)).samples(100, max_points=1000).samples.size == 1000


def test_the_resolution_of_the_edges_is_stated() -> None:
    fine = Histogram(tuple(range(10, 110, 10)), (100.0,) * 10).samples(100)
    coarse = Histogram((50.0, 100.0), (500.0, 500.0)).samples(100)
    assert 5 <= fine.error_tokens < 7
    assert 25 <= coarse.error_tokens < 27


def of(values: Floats, edges: Floats) -> Histogram:
    counts = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1).astype(float)
    return Histogram(tuple(edges.tolist()), tuple(counts[:-1].tolist()), float(counts[-1]))


EDGES = np.array([0.001 * 2 ** (n / 2) for n in range(36)])
STREAMS = {
    "Poisson": (lambda rng: rng.exponential(1.0, 100_000), 1.0),
    "a metronome": (lambda rng: rng.normal(1.0, 0.01, 100_000), 0.0),
    "bursts": (lambda rng: np.where(rng.random(100_000) < 0.9, 0.01, rng.exponential(10.0, 100_000)), None),
}


@pytest.mark.parametrize(("draw", "expected"), STREAMS.values(), ids=STREAMS.keys())
def test_the_variation_of_gaps_is_told_from_buckets(
    draw: Callable[[np.random.Generator], Floats], expected: float | None
) -> None:
    gaps = draw(np.random.default_rng(1))
    exact = float(gaps.var() / gaps.mean() ** 2)
    assert of(gaps, EDGES).scv(float(gaps.mean())) == pytest.approx(exact, rel=0.1, abs=0.05)
    if expected is not None:
        assert exact == pytest.approx(expected, abs=0.05)


def test_the_overflow_counts_with_the_mean_that_is_left_for_it() -> None:
    gaps = np.array([1.0] * 90 + [100.0] * 10)
    assert of(gaps, np.array([0.5, 1.0, 2.0])).scv(float(gaps.mean())) == pytest.approx(7.4, rel=0.06)


@pytest.mark.parametrize("mean", [0.0, -1.0, math.nan])
def test_without_a_mean_there_is_no_variation(mean: float) -> None:
    assert Histogram((1.0,), (5.0,)).scv(mean) is None
