"""Histograms of tokens and seconds; requests are counted in them when they are over."""

from prometheus_client import Histogram

from kvplan_engine.engine import Answer
from kvplan_engine.metrics.buckets import PREEMPTIONS, Buckets
from kvplan_engine.metrics.families import Families


class Histograms:
    """Histograms of tokens and seconds."""

    def __init__(self, families: Families, buckets: Buckets) -> None:
        def tokens(name: str) -> Histogram:
            return families.histogram(name, "Tokens per request.", buckets.request_tokens)

        def latency(name: str) -> Histogram:
            return families.histogram(name, "Seconds per request.", buckets.request_latency)

        def token_latency(name: str) -> Histogram:
            return families.histogram(name, "Seconds per token.", buckets.inter_token_latency)

        self._prompt, self._generation = tokens("request_prompt_tokens"), tokens("request_generation_tokens")
        self._cap, self._longest = tokens("request_params_max_tokens"), tokens("request_max_num_generation_tokens")
        self._computed = tokens("request_prefill_kv_computed_tokens")
        self._preemptions = families.histogram("request_num_preemptions", "Preemptions per request.", PREEMPTIONS)
        self._total, self._queue = latency("e2e_request_latency_seconds"), latency("request_queue_time_seconds")
        self._prefill, self._decode = latency("request_prefill_time_seconds"), latency("request_decode_time_seconds")
        self._inference = latency("request_inference_time_seconds")
        self._per_token = token_latency("request_time_per_output_token_seconds")
        self.inter_token = token_latency("inter_token_latency_seconds")
        self.first_token = families.histogram(
            "time_to_first_token_seconds", "Seconds to the first token.", buckets.time_to_first_token
        )
        self.iteration = families.histogram(
            "iteration_tokens_total", "Tokens per engine step.", buckets.iteration_tokens
        )

    def request_over(self, answer: Answer) -> None:
        """Count a request that ended by itself."""
        self._lengths(answer)
        self._times(answer)

    def _lengths(self, answer: Answer) -> None:
        request = answer.request
        self._prompt.observe(len(request.prompt))
        self._generation.observe(request.generated)
        self._longest.observe(request.generated)
        self._cap.observe(request.max_tokens)
        self._computed.observe(len(request.prompt) - request.cached_tokens)
        self._preemptions.observe(request.preemptions)

    def _times(self, answer: Answer) -> None:
        scheduled, first, last = answer.scheduled, answer.first_token, answer.last_token
        if scheduled is None or first is None or last is None:
            raise RuntimeError("a request ended by itself before it was scheduled")
        self._total.observe(last - answer.arrived)
        self._queue.observe(scheduled - answer.arrived)
        self._prefill.observe(first - scheduled)
        self._decode.observe(last - first)
        self._inference.observe(last - scheduled)
        if answer.request.generated > 1:
            self._per_token.observe((last - first) / (answer.request.generated - 1))
