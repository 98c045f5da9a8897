"""Real traces give the figures that are known of them; skipped where the traces are absent."""

from pathlib import Path

import pytest

from kvplan_cli.sample_workload import data_directory, sample_workload
from kvplan_cli.traces import LoadedTrace, load_trace
from kvplan_cli.traces.quantile_tables import read_quantiles
from kvplan_operator.model.fitting import FitOptions, fit_trace

pytestmark = pytest.mark.data


def real(name: str) -> Path:
    path = data_directory() / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {data_directory()}; set KVPLAN_DATA to the directory of the traces")
    return path


def loaded(name: str) -> LoadedTrace:
    return load_trace(real(name), {}, "traced")


ROWS = {
    "azure2023_conv.csv.gz": 12_337,
    "azure2023_code.csv.gz": 6_621,
    "lengths_arxiv_summarization.csv.gz": 19_782,
    "lengths_sharegpt8k.csv.gz": 21_512,
    "mooncake_conversation.jsonl.gz": 7_851,
    "mooncake_hotkey_1000.jsonl.gz": 1_000,
    "agentic_requests.csv.gz": 27_379,
}


@pytest.mark.parametrize("name", ROWS)
def test_every_published_row_is_read_without_a_mapping(name: str) -> None:
    trace = loaded(name)
    assert trace.report.bad.count == 0
    assert trace.traces[0].count == ROWS[name]


def test_code_completion_has_short_outputs_and_a_very_bursty_arrival() -> None:
    fitted = fit_trace(loaded("azure2023_code.csv.gz").traces[0], FitOptions())
    assert fitted.output_mean == pytest.approx(28, rel=0.05)  # mean of the published trace
    assert fitted.arrivals is not None
    assert fitted.arrivals.scv is not None
    assert fitted.arrivals.scv**0.5 == pytest.approx(13, rel=0.05)  # the design's inter-arrival CV
    assert fitted.arrival_scv is not None
    assert fitted.arrival_scv > 30


def test_conversations_arrive_nearly_as_poisson_and_drift() -> None:
    fitted = fit_trace(loaded("azure2023_conv.csv.gz").traces[0], FitOptions())
    assert fitted.output_mean == pytest.approx(211, rel=0.05)  # mean of the published trace
    assert fitted.arrival_scv == pytest.approx(1.0, abs=0.15)
    assert fitted.radius.drift_tokens > 5 * fitted.radius.noise_tokens


def test_the_summaries_have_their_heavy_tail_and_no_rate() -> None:
    fitted = fit_trace(loaded("lengths_arxiv_summarization.csv.gz").traces[0], FitOptions())
    samples = fitted.output_lengths.samples
    p90, p99 = (samples[int(level * len(samples)) - 1] for level in (0.9, 0.99))
    assert p99 / p90 == pytest.approx(8.8, rel=0.05)
    assert fitted.requests_per_second is None


def test_one_hot_prefix_carries_a_third_of_the_requests() -> None:
    fitted = fit_trace(loaded("mooncake_hotkey_1000.jsonl.gz").traces[0], FitOptions(key_blocks=2))
    assert fitted.keys is not None
    assert fitted.requests_per_second is not None
    assert fitted.keys.requests_per_second[0] / fitted.requests_per_second == pytest.approx(0.36, abs=0.01)
    assert fitted.arrivals is not None
    assert fitted.arrivals.grid_seconds == pytest.approx(3, abs=0.1)


def test_all_conversations_share_their_first_block() -> None:
    fitted = fit_trace(loaded("mooncake_conversation.jsonl.gz").traces[0], FitOptions())
    assert fitted.prefix is not None
    assert (fitted.prefix.tokens, fitted.prefix.covered) == (512, 1.0)


def test_published_quantile_tables_are_read() -> None:
    found = read_quantiles(str(real("servegen_deepseek-r1_lengths.csv.gz")))
    assert "130 rows mixed" in found.output.note
    assert abs(found.output.samples.mean() - found.output_mean) <= found.output.error_tokens
    week = read_quantiles(f"{real('published_quantiles.json')}#azure2024_code_full_week")
    assert (week.output_mean, week.output_maximum) == (23, 5_000)


def test_the_sample_workload_uses_the_real_traces() -> None:
    real("azure2023_conv.csv.gz")
    sample = sample_workload()
    assert sample.real
    chat, code, summarise = sample.workloads
    assert (chat.name, code.name, summarise.name) == ("chat", "code", "summarise")
    assert chat.keys is not None
    assert chat.requests_per_second is not None
    assert chat.keys.requests_per_second.sum() == pytest.approx(chat.requests_per_second, rel=0.01)
    assert chat.keys.reusable_tokens is not None
    assert chat.prompt is not None
    assert chat.keys.reusable_tokens.max() <= chat.prompt.p95
    assert summarise.requests_per_second == 1.0
