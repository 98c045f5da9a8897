"""/metrics: vLLM's names, types, labels and edges."""

import math

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kvplan_engine.arguments.parser import parse
from kvplan_engine.core.scheduler import Scheduler
from kvplan_engine.metrics.buckets import one_two_five
from kvplan_engine.metrics.engine_metrics import EngineMetrics
from kvplan_engine.settings import settings_of

COUNTERS = {
    "request_success", "prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits",
    "external_prefix_cache_queries", "external_prefix_cache_hits", "prompt_tokens_cached", "prompt_tokens_by_source",
    "prompt_tokens_cached_by_source", "num_preemptions", "admission_rejections",
}  # fmt: skip
HISTOGRAMS = {
    "request_prompt_tokens", "request_generation_tokens", "request_params_max_tokens",
    "request_max_num_generation_tokens", "request_prefill_kv_computed_tokens", "request_num_preemptions",
    "time_to_first_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds", "request_queue_time_seconds", "request_prefill_time_seconds",
    "request_decode_time_seconds", "request_inference_time_seconds", "iteration_tokens_total",
}  # fmt: skip
GAUGES = {
    "kv_cache_usage_perc", "cache_config_info", "num_requests_running", "num_requests_waiting",
    "num_requests_waiting_by_reason",
}  # fmt: skip
GONE = ("gpu_cache_usage_perc", "gpu_prefix_cache", "time_per_output_token_seconds_bucket{", "num_requests_swapped")


def _text(*flags: str) -> str:
    settings = settings_of(parse(["serve", "org/model", *flags], {}))
    return generate_latest(EngineMetrics(settings, Scheduler(settings.limits)).registry).decode()


def _families(kind: str) -> set[str]:
    families = text_string_to_metric_families(_text())
    names = {family.name.removeprefix("vllm:") for family in families if family.type == kind}
    return {name for name in names if not name.endswith("_created")}


@pytest.mark.parametrize(("kind", "names"), [("counter", COUNTERS), ("histogram", HISTOGRAMS), ("gauge", GAUGES)])
def test_there_are_exactly_these_families(kind: str, names: set[str]) -> None:
    assert _families(kind) == names


def test_counters_carry_total_and_created() -> None:
    text = _text()
    for name in COUNTERS:
        assert f"\nvllm:{name}_total{{" in text
        assert f"\nvllm:{name}_created{{" in text


@pytest.mark.parametrize("name", GONE)
def test_names_that_vllm_dropped_are_absent(name: str) -> None:
    assert f"vllm:{name}" not in _text()


def test_engine_metrics_carry_the_first_served_name_and_the_engine() -> None:
    families = text_string_to_metric_families(_text("--served-model-name", "first", "second"))
    for sample in (sample for family in families for sample in family.samples):
        if "admission_rejections" in sample.name:
            assert set(sample.labels) == {"model_name", "reason"}
        elif sample.name != "vllm:cache_config_info":
            assert (sample.labels["model_name"], sample.labels["engine"]) == ("first", "0")


@pytest.mark.parametrize(
    ("family", "label", "values"),
    [
        ("request_success_total", "finished_reason", {"stop", "length", "abort", "error", "repetition"}),
        ("prompt_tokens_by_source_total", "source", {"local_compute", "local_cache_hit", "external_kv_transfer"}),
        (
            "prompt_tokens_cached_by_source_total",
            "source",
            {"device", "host", "disk", "p2p", "external_unspecified"},
        ),
        ("num_requests_waiting_by_reason", "reason", {"capacity", "deferred"}),
        ("admission_rejections_total", "reason", {"max_num_queued_reqs", "max_num_queued_tokens"}),
    ],
)
def test_a_split_metric_has_all_its_values_from_the_start(family: str, label: str, values: set[str]) -> None:
    samples = [sample for found in text_string_to_metric_families(_text()) for sample in found.samples]
    assert {sample.labels[label] for sample in samples if sample.name == f"vllm:{family}"} == values


def _edges(name: str, *flags: str) -> list[float]:
    samples = [sample for family in text_string_to_metric_families(_text(*flags)) for sample in family.samples]
    return [float(sample.labels["le"]) for sample in samples if sample.name == f"vllm:{name}_bucket"]


@pytest.mark.parametrize(
    ("longest", "edges"),
    [(2048, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)), (100, (1, 2, 5, 10, 20, 50, 100)), (1, (1,))],
)
def test_length_edges_end_at_the_longest_length(longest: int, edges: tuple[int, ...]) -> None:
    assert one_two_five(longest) == edges


def test_custom_edges_replace_a_familys_and_leave_the_others() -> None:
    flags = ("--max-model-len", "2048", "--custom-histogram-buckets", '{"request_tokens":[8,16,32,48,64]}')
    for name in ("request_prompt_tokens", "request_generation_tokens", "request_params_max_tokens"):
        assert _edges(name, *flags) == [8, 16, 32, 48, 64, math.inf]
    assert _edges("iteration_tokens_total", *flags)[:3] == [1, 8, 16]
    assert _edges("iteration_tokens_total", *flags)[-2:] == [16384, math.inf]
    assert _edges("time_to_first_token_seconds", *flags)[0] == 0.001


def test_the_cache_config_says_what_an_operator_reads_m_from() -> None:
    text = _text("--num-gpu-blocks-override", "32", "--block-size", "32", "--max-model-len", "512")
    (family,) = [f for f in text_string_to_metric_families(text) if f.name == "vllm:cache_config_info"]
    (sample,) = family.samples
    assert sample.value == 1
    assert {
        "num_gpu_blocks": "32",
        "block_size": "32",
        "kv_cache_size_tokens": "1024",
        "kv_cache_max_concurrency": "2.0",
        "kv_cache_memory_bytes": "None",
        "num_gpu_blocks_override": "32",
        "enable_prefix_caching": "True",
        "gpu_memory_utilization": "0.92",
        "engine": "0",
    }.items() <= sample.labels.items()
