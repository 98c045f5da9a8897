"""The engine's metrics: names, labels and meaning of vLLM 0.32.

What is odd is odd on purpose: work lost to preemption appears in the two preemption metrics alone, lengths
are counted when a request is over, an iteration's tokens are whole prompts plus new tokens, and there is
no arrival counter. prometheus-client, which vLLM uses too, gives the same text, ``_created`` included.
"""

from prometheus_client import Counter

from kvplan_engine.core.request import FinishReason
from kvplan_engine.core.scheduler import Scheduler
from kvplan_engine.engine import Answer
from kvplan_engine.metrics.buckets import buckets_for
from kvplan_engine.metrics.families import ENGINE, Families
from kvplan_engine.metrics.histograms import Histograms
from kvplan_engine.metrics.tokens import TokenCounters
from kvplan_engine.settings import Settings

REJECTION_REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")


class EngineMetrics:
    """Observes an engine (see ``engine.Observer``)."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        families = Families(settings.model_names[0])
        self.registry = families.registry
        self._prefix_caching = settings.limits.prefix_caching
        self._tokens = TokenCounters(families)
        buckets = buckets_for(settings.cache.max_model_len, settings.flags.custom_histogram_buckets)
        self._histograms = Histograms(families, buckets)
        self._preemptions = families.counter("num_preemptions", "Preemptions.")
        self._over = families.split_counter(
            "request_success", "Requests that are over.", "finished_reason", tuple(FinishReason)
        )
        self._rejections = _rejections(families)
        _gauges(families, scheduler)
        families.info("cache_config_info", "The cache configuration.", _cache_facts(settings))

    def admitted(self, answer: Answer) -> None:
        """Prefix cache look-ups are counted once per request, in tokens."""
        if self._prefix_caching:
            self._tokens.queries.inc(len(answer.request.prompt))
            self._tokens.hits.inc(answer.request.cached_tokens)

    def preempted(self, requests: int) -> None:
        """Count preemptions."""
        self._preemptions.inc(requests)

    def stepped(self, tokens: int) -> None:
        """Count a step."""
        self._histograms.iteration.observe(tokens)

    def produced(self, answer: Answer, since_last: float | None) -> None:
        """Count a token; the prompt with the first one."""
        self._tokens.generation.inc()
        if since_last is not None:
            self._histograms.inter_token.observe(since_last)
        elif answer.first_token is not None:
            self._tokens.prompt_done(len(answer.request.prompt), answer.request.cached_tokens)
            self._histograms.first_token.observe(answer.first_token - answer.arrived)

    def finished(self, answer: Answer, reason: FinishReason) -> None:
        """Count a request that is over; lengths and times only of one that ended by itself."""
        self._over[reason].inc()
        if reason is not FinishReason.ABORT:
            self._histograms.request_over(answer)

    def rejected(self, reason: str) -> None:
        """Count a request that was refused for one of REJECTION_REASONS."""
        self._rejections[reason].inc()


def _rejections(families: Families) -> dict[str, Counter]:
    """The API process counts these, so that they carry no engine label."""
    text, labels = "Requests refused before they reached the engine.", ("model_name", "reason")
    family = Counter("vllm:admission_rejections", text, labels, registry=families.registry)
    return {reason: family.labels(families.model_name, reason) for reason in REJECTION_REASONS}


def _gauges(families: Families, scheduler: Scheduler) -> None:
    families.gauge("num_requests_running", "Requests in execution.", lambda: len(scheduler.running))
    families.gauge("num_requests_waiting", "Requests waiting.", lambda: len(scheduler.waiting))
    families.gauge("kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.", lambda: scheduler.pool.usage)
    by_reason = {"capacity": lambda: float(len(scheduler.waiting)), "deferred": lambda: 0.0}
    families.split_gauge("num_requests_waiting_by_reason", "Requests waiting, by why.", "reason", by_reason)


def _cache_facts(settings: Settings) -> dict[str, object]:
    flags, cache = settings.flags, settings.cache
    return {
        "block_size": cache.block_tokens,
        "cache_dtype": flags.kv_cache_dtype or "auto",
        "enable_prefix_caching": flags.enable_prefix_caching,
        "engine": ENGINE,
        "gpu_memory_utilization": flags.gpu_memory_utilization,
        "kv_cache_max_concurrency": cache.max_concurrency,
        "kv_cache_memory_bytes": flags.kv_cache_memory_bytes,
        "kv_cache_size_tokens": cache.size_tokens,
        "num_gpu_blocks": cache.blocks,
        "num_gpu_blocks_override": flags.num_gpu_blocks_override,
    }
