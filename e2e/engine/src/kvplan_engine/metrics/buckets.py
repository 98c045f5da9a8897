"""Edges of the histograms, as vLLM 0.32 has them; ``--custom-histogram-buckets`` replaces a family's. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

Edges = tuple[float, ...]

TIME_TO_FIRST_TOKEN: Edges = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
INTER_TOKEN: Edges = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_LATENCY: Edges = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
ITERATION_TOKENS: Edges = (1.0, *(float(2**power) for power in range(3, 15)))
PREEMPTIONS: Edges = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)


def one_two_five(longest: int) -> Edges:
    """1, 2, 5, 10, 20, 50, … up to ``longest``."""
    edges: list[float] = []
    decade = 1
    while decade <= longest:
        edges += [decade * mantissa for mantissa in (1, 2, 5) if decade * mantissa <= longest]
        decade *= 10
    return tuple(edges)


@dataclass(frozen=True)
class Buckets:
    """Edges by family: tokens per request, seconds, tokens per step."""

    request_tokens: Edges
    request_latency: Edges = REQUEST_LATENCY
    time_to_first_token: Edges = TIME_TO_FIRST_TOKEN
    inter_token_latency: Edges = INTER_TOKEN
    iteration_tokens: Edges = ITERATION_TOKENS


def buckets_for(longest: int, custom: Mapping[str, Edges]) -> Buckets:
    """The edges of an engine whose requests have at most ``longest`` tokens."""
    return Buckets(**{"request_tokens": one_two_five(longest), **custom})
