"""What an engine says of itself, from the text of its ``/metrics``.

Input: Prometheus' text format, of which only the lines that matter are parsed. Output: an ``EngineState``. Must not
take a page without vLLM's gauges for an idle engine. Names are those of vLLM 0.32. Pure.
"""

import math

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kvplan_operator.model.calibration import capacity_tokens
from kvplan_operator.model.snapshot import EngineState
from kvplan_solver.errors import Finding, InvalidInput

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
CACHE = "vllm:cache_config_info"
_NAMES = (RUNNING, WAITING, CACHE)


def engine_state(text: str, version: str | None) -> EngineState:
    """The state of the server that gave this text; several engines in one server (data parallel) add up.

    Raises:
        InvalidInput: no text format, or one without the gauges of running and waiting requests.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in _NAMES}
    for sample in _samples(text):
        samples.setdefault(sample.name, []).append(sample)
    return EngineState(_capacity(samples[CACHE]), _count(samples, RUNNING), _count(samples, WAITING), version)


def _samples(text: str) -> list[Sample]:
    # A page has some 600 lines and a fleet hundreds of engines: only a handful of lines is worth a parser's time.
    lines = [line for line in text.splitlines() if line.startswith(_NAMES)]
    try:
        families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
    except ValueError as error:
        raise InvalidInput("engine", "/metrics", Finding("is no Prometheus text"), str(error)[:100]) from error
    return [sample for family in families for sample in family.samples]


def _count(samples: dict[str, list[Sample]], name: str) -> int:
    values = [sample.value for sample in samples[name]]
    total = sum(values)
    if not values or not math.isfinite(total) or total < 0:
        raise InvalidInput("engine", name, values or None, "point the metrics port at a vLLM server")
    return round(total)


def _capacity(samples: list[Sample]) -> int | None:
    """M of the server: the least of its engines, because one request lives in one of them."""
    labels = (sample.labels for sample in samples)
    found = (capacity_tokens(each.get("num_gpu_blocks", ""), each.get("block_size", "")) for each in labels)
    return min((tokens for tokens in found if tokens is not None), default=None)
