"""Laws of W1, compaction, quantile tables and readers, on arbitrary input."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvplan_cli.traces import TraceError, load_trace
from kvplan_operator.model.lengths import compact_lengths, lengths_from_histogram, lengths_from_quantiles
from kvplan_operator.model.prefixes import shared_prefix
from kvplan_operator.model.trace import PrefixBlocks
from kvplan_solver.radius import wasserstein_1

samples = st.lists(st.integers(0, 5_000), min_size=1, max_size=60).map(lambda values: np.array(values, float))


@given(samples, samples, samples)
def test_w1_is_a_metric(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    assert wasserstein_1(a, a) == 0
    assert wasserstein_1(a, b) == pytest.approx(wasserstein_1(b, a))
    assert wasserstein_1(a, c) <= wasserstein_1(a, b) + wasserstein_1(b, c) + 1e-9


@given(samples)
def test_w1_of_equal_sizes_is_the_mean_move_of_sorted_samples(a: np.ndarray) -> None:
    b = np.random.default_rng(len(a)).integers(0, 5_000, len(a)).astype(float)
    assert wasserstein_1(a, b) == pytest.approx(np.abs(np.sort(a) - np.sort(b)).mean())


@given(samples, st.integers(1, 80))
def test_compaction_keeps_order_range_and_states_its_distance(a: np.ndarray, points: int) -> None:
    kept = compact_lengths(a, points)
    assert len(kept.samples) == min(points, len(a))
    assert (np.diff(kept.samples) >= 0).all()
    assert set(kept.samples.tolist()) <= set(a.tolist())
    assert kept.error_tokens == pytest.approx(wasserstein_1(kept.samples, a))
    assert kept.error_tokens <= (a.max() - a.min()) / (2 * points) + 1e-9


@given(samples, st.lists(st.integers(1, 99), unique=True, max_size=8), st.integers(50, 300))
def test_the_stated_error_of_a_quantile_table_covers_its_source(
    a: np.ndarray, percents: list[int], points: int
) -> None:
    levels = [0.0, *(percent / 100 for percent in sorted(percents)), 1.0]
    values = np.quantile(a, levels, method="inverted_cdf").tolist()
    made = lengths_from_quantiles(levels, values, points)
    assert wasserstein_1(made.samples, a) <= made.error_tokens + 1e-9


@given(samples, st.lists(st.integers(1, 4_999), unique=True, max_size=8), st.integers(50, 300))
def test_the_stated_error_of_a_histogram_covers_its_source(a: np.ndarray, edges: list[int], points: int) -> None:
    uppers = [*sorted(edges), 5_000]
    counts = np.diff(np.searchsorted(np.sort(a), uppers, side="right"), prepend=0)
    made = lengths_from_histogram(uppers, counts.tolist(), points)
    assert wasserstein_1(made.samples, a) <= made.error_tokens + 1e-9


prompts = st.lists(st.lists(st.integers(0, 2), max_size=5), min_size=1, max_size=12)


@given(prompts, st.sampled_from([0.6, 0.75, 1.0]))
def test_the_shared_prefix_is_the_deepest_that_enough_prompts_have(rows: list[list[int]], share: float) -> None:
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    ids = np.array([block for row in rows for block in row], dtype=np.int64)
    found = shared_prefix(PrefixBlocks(offsets, ids, 1), share)
    followers = {
        depth: max(sum(row[:depth] == other[:depth] for row in rows if len(row) >= depth) for other in rows
                   if len(other) >= depth)
        for depth in range(1, max((len(row) for row in rows), default=0) + 1)
    }  # fmt: skip
    enough = [depth for depth, count in followers.items() if count >= share * len(rows)]
    assert found.tokens == max(enough, default=0)


def outcome(path: Path) -> tuple[int, int, str]:
    """Rows used, rows counted as bad, and the error if there was one."""
    try:
        loaded = load_trace(path, {}, "chat")
    except TraceError as error:
        found = re.search(r"no good row: ([0-9]+) bad row", str(error))
        return 0, int(found.group(1)) if found else 0, str(error)
    return loaded.traces[0].count, loaded.report.bad.count, ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400), name=st.sampled_from(["a.csv", "a.jsonl", "a.csv.gz", "a.jsonl.gz"]))
def test_any_bytes_are_a_trace_or_one_clear_error(content: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    used, counted, problem = outcome(path)
    assert used + counted > 0 or problem.startswith(str(path))


cells = st.sampled_from(["0", "7", "12", "-3", "1.5", "x", "", "nan", "1e400", '"8"', "9 "])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=20))
def test_every_row_is_either_used_or_counted(rows: list[list[str]], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t_s,prompt_tokens,output_tokens\n" + "".join(",".join(row) + "\n" for row in rows))
    filled = [row for row in rows if row != [""]]  # a blank line is no row
    used, counted, problem = outcome(path)
    assert used + counted == len(filled) or problem.endswith("give a file with at least one request")
