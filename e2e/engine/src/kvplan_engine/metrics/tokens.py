"""Counters of tokens: prompts, answers, prefix cache."""

from kvplan_engine.metrics.families import Families

CACHED_SOURCES = ("device", "host", "disk", "p2p", "external_unspecified")
PROMPT_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")


class TokenCounters:
    """Counters of tokens."""

    def __init__(self, families: Families) -> None:
        self.prompt = families.counter("prompt_tokens", "Prompt tokens of requests that got a first token.")
        self.generation = families.counter("generation_tokens", "Tokens generated.")
        self.queries = families.counter("prefix_cache_queries", "Tokens looked up in the prefix cache.")
        self.hits = families.counter("prefix_cache_hits", "Tokens found in the prefix cache.")
        for name in ("external_prefix_cache_queries", "external_prefix_cache_hits"):
            families.counter(name, "Tokens of an external cache; there is none.")
        self._cached = families.counter("prompt_tokens_cached", "Prompt tokens taken from a cache.")
        self._by_source = families.split_counter(
            "prompt_tokens_by_source", "Prompt tokens by where they came from.", "source", PROMPT_SOURCES
        )
        self._cached_by_source = families.split_counter(
            "prompt_tokens_cached_by_source", "Cached prompt tokens by where they were.", "source", CACHED_SOURCES
        )

    def prompt_done(self, tokens: int, cached: int) -> None:
        """Count a prompt that is computed, of which ``cached`` tokens were in the cache."""
        self.prompt.inc(tokens)
        self._cached.inc(cached)
        self._by_source["local_compute"].inc(tokens - cached)
        self._by_source["local_cache_hit"].inc(cached)
        self._cached_by_source["device"].inc(cached)
