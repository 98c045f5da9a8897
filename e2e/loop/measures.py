"""What Prometheus says of the engines over a period: the figures that the report compares.

Inputs: Prometheus's URL, a period, the pods. Outputs: ``Measures``. Everything comes from the engines' own metrics, the
same for every way of routing, so that nobody marks its own work.
"""

import json
import math
import urllib.parse
import urllib.request
from dataclasses import dataclass

_STEP_SECONDS = 2
_PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class Period:
    """From when to when, seconds since the epoch."""

    begin: float
    end: float

    @property
    def window(self) -> str:
        """As a PromQL range."""
        return f"{max(2, round(self.end - self.begin))}s"


@dataclass(frozen=True)
class Measures:
    """Figures of one period; NaN where nothing was measured.

    Attributes:
        requests: finished.
        latency_p50: seconds.
        latency_p99: seconds.
        first_token_p99: seconds.
        hit_rate: share of prompt tokens found in a prefix cache.
        preemptions: of all engines.
        load_ratio: busiest over mean engine, by requests running or waiting, over time.
        kv_usage: mean share of the KV cache in use.
    """

    requests: float
    latency_p50: float
    latency_p99: float
    first_token_p99: float
    hit_rate: float
    preemptions: float
    load_ratio: float
    kv_usage: float


class Prometheus:
    """The query API."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url, self._where = url, f'namespace="{namespace}"'

    def measures(self, period: Period) -> Measures:
        """The figures of a period."""
        w = period.window
        hits, asked = self._grown("vllm:prefix_cache_hits_total", w), self._grown("vllm:prefix_cache_queries_total", w)
        held = f"sum by (pod) (vllm:num_requests_running{{{self._where}}} + vllm:num_requests_waiting{{{self._where}}})"
        uneven = f"avg_over_time((max({held}) / (avg({held}) > 0))[{w}:{_STEP_SECONDS}s])"
        used = f"avg_over_time(avg(vllm:kv_cache_usage_perc{{{self._where}}})[{w}:{_STEP_SECONDS}s])"
        return Measures(
            requests=self.value(self._grown("vllm:request_success_total", w), period.end),
            latency_p50=self._quantile(0.5, "vllm:e2e_request_latency_seconds", period),
            latency_p99=self._quantile(0.99, "vllm:e2e_request_latency_seconds", period),
            first_token_p99=self._quantile(0.99, "vllm:time_to_first_token_seconds", period),
            hit_rate=self.value(f"{hits} / {asked}", period.end),
            preemptions=self.value(self._grown("vllm:num_preemptions_total", w), period.end),
            load_ratio=self.value(uneven, period.end),
            kv_usage=self.value(used, period.end),
        )

    def value(self, query: str, at: float) -> float:
        """The one value of a query; NaN where there is none."""
        arguments = urllib.parse.urlencode({"query": query, "time": f"{at:.3f}"})
        url = f"{self._url}/api/v1/query?{arguments}"
        with urllib.request.urlopen(url, timeout=_PATIENCE_SECONDS) as response:  # noqa: S310 - loopback
            result = json.load(response)["data"]["result"]
        return float(result[0]["value"][1]) if result else math.nan

    def _grown(self, counter: str, window: str) -> str:
        return f"sum(increase({counter}{{{self._where}}}[{window}]))"

    def _quantile(self, share: float, histogram: str, period: Period) -> float:
        buckets = f"sum by (le) (increase({histogram}_bucket{{{self._where}}}[{period.window}]))"
        return self.value(f"histogram_quantile({share}, {buckets})", period.end)
