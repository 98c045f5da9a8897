"""Rates and lengths of a model's requests, as its engines count them in Prometheus.

Inputs: the namespace, the servers of one model, replies. Output: a frozen ``Traffic`` of one class that holds all
requests; what was not measured is None. Queries as values, so that the asking is elsewhere. Pure.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvplan_cli.drafting.servers import Server
from kvplan_operator.model.histograms import Histogram
from kvplan_operator.model.promql import increase, selector, sum_by
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.series import Reply

WINDOW_SECONDS = 3_600
LEVELS_MILLI = (100, 250, 500, 750, 900, 950, 990)
FINISHED, PROMPTS, PROMPT_SUM, OUTPUTS = "finished", "prompts", "prompt sum", "outputs"


@dataclass(frozen=True)
class Traffic:
    """All requests of one model.

    Attributes:
        requests_per_second_milli: finished requests; None where unknown.
        prompt_mean: tokens.
        prompt_p95: tokens, good to one bucket of the engines' histogram.
        output_quantiles: (thousandths, tokens), ascending; empty where unknown.
    """

    requests_per_second_milli: int | None = None
    prompt_mean: int | None = None
    prompt_p95: int | None = None
    output_quantiles: tuple[tuple[int, int], ...] = ()


def traffic_queries(namespace: str, servers: Sequence[Server]) -> dict[str, str]:
    """PromQL by what it asks for.

    Raises:
        InvalidInput: a name that no query can carry.
    """
    begun = {"pod": sorted(f"{server.deployment}-" for server in servers)}

    def grown(metric: str) -> str:
        return increase(selector(f"vllm:{metric}", {"namespace": namespace}, beginning=begun), WINDOW_SECONDS)

    return {
        FINISHED: f"sum ({grown('request_success_total')})",
        PROMPTS: sum_by(("le",), grown("request_prompt_tokens_bucket")),
        PROMPT_SUM: f"sum ({grown('request_prompt_tokens_sum')})",
        OUTPUTS: sum_by(("le",), grown("request_generation_tokens_bucket")),
    }


def traffic_of(replies: Mapping[str, Reply], source: str, now: float) -> Traffic:
    """What the replies say."""
    read = Replies(replies, source, now)
    finished, prompt_sum = _one(read, FINISHED), _one(read, PROMPT_SUM)
    prompts, outputs = read.histogram(PROMPTS), read.histogram(OUTPUTS)
    seen = prompts.total if prompts is not None else 0.0
    p95 = prompts.quantile(0.95) if prompts is not None and seen > 0 else math.inf
    return Traffic(
        requests_per_second_milli=None if not finished else round(1000 * finished / WINDOW_SECONDS),
        prompt_mean=round(prompt_sum / seen) if prompt_sum and seen > 0 else None,
        prompt_p95=math.ceil(p95) if math.isfinite(p95) else None,
        output_quantiles=() if outputs is None or outputs.total <= 0 else _quantiles(outputs),
    )


def _one(read: Replies, ask: str) -> float | None:
    return next((series.value for series in read.answer(ask).finite), None)


def _quantiles(outputs: Histogram) -> tuple[tuple[int, int], ...]:
    """Rising points up to the highest bucket that is not empty; the overflow has no length."""
    inner = [(level, outputs.quantile(level / 1000)) for level in LEVELS_MILLI]
    points = [*inner, (1000, outputs.highest)]
    return tuple((level, max(1, math.ceil(tokens))) for level, tokens in points if math.isfinite(tokens))
