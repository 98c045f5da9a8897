"""What the tests on the real vLLM read off a metrics page."""

import pytest

from e2e.harness import pages

PAGE = """\
# TYPE vllm:request_success counter
vllm:request_success_total{engine="0",finished_reason="length"} 3.0
vllm:request_success_total{engine="0",finished_reason="stop"} 2.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="32",num_gpu_blocks="65"} 1.0
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{le="16.0"} 0.0
vllm:request_prompt_tokens_bucket{le="8.0"} 0.0
vllm:request_prompt_tokens_bucket{le="+Inf"} 1.0
vllm:request_prompt_tokens_count 1.0
vllm:request_prompt_tokens_sum 20.0
"""


def test_samples_of_a_name_are_added_up() -> None:
    assert pages.total(PAGE, "vllm:request_success_total") == 5
    assert pages.total(PAGE, "vllm:request_success_total", finished_reason="stop") == 2
    assert pages.total(PAGE, "vllm:request_success_total", finished_reason="abort") == 0


def test_labels_and_edges_are_told() -> None:
    assert pages.labels(PAGE, "vllm:cache_config_info") == {"block_size": "32", "num_gpu_blocks": "65"}
    assert pages.edges(PAGE, "vllm:request_prompt_tokens") == [8, 16]


def test_a_renamed_metric_is_no_zero() -> None:
    with pytest.raises(LookupError, match="vllm:num_preemptions_total"):
        pages.total(PAGE, "vllm:num_preemptions_total")
