"""What the plan needs to know of the traffic, counted per class. Pure state and plain values.

In: arrivals, placements, ends. Out: :class:`ClassValues`, which a metrics page renders. Labels are class names and
outcomes only: no key text, no client, no prompt. Length histograms follow the fleet's grid, and start again when
that changes. Source: 05-router §6; names and labels in 09-contracts "Metrics".
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kvplan_router.core.histogram import Histogram, HistogramValues
from kvplan_router.core.values import Outcome, Usage

UNMATCHED = "(unmatched)"
"""Label of requests that match no class; no class can have this name."""

SECONDS = tuple(round(base * 10.0**power, 4) for power in range(-3, 3) for base in (1, 2, 5))
"""Bounds of times in queues, and of other times where the fleet has no grid for them: 1 ms to 500 s."""


class ClassValues(NamedTuple):
    """The counters of one class at one moment.

    Attributes:
        outcomes: arrivals by outcome.
        prompt_tokens: of answers whose usage was seen.
        output_tokens: of the same.
        finished: answers that ended.
        sampled: those whose usage was seen; over ``finished`` it is the sampling ratio.
        interarrival_seconds: between arrivals.
        queue_seconds: of requests that waited.
        latency_seconds: from arrival to the last byte of the answer, where that was seen.
    """

    outcomes: Mapping[Outcome, int]
    prompt_tokens: HistogramValues
    output_tokens: HistogramValues
    finished: int
    sampled: int
    interarrival_seconds: HistogramValues
    queue_seconds: HistogramValues
    latency_seconds: HistogramValues


class ClassMeter:
    """Counters of one class; kept over table swaps."""

    __slots__ = (
        "_finished", "_interarrival", "_last_arrival", "_latency", "_outcomes", "_output", "_prompt", "_queue",
        "_sampled",
    )  # fmt: skip

    def __init__(self) -> None:
        self._outcomes = dict.fromkeys(Outcome, 0)
        self._prompt, self._output = Histogram(()), Histogram(())
        self._interarrival, self._queue, self._latency = Histogram(SECONDS), Histogram(SECONDS), Histogram(SECONDS)
        self._last_arrival: float | None = None
        self._finished = self._sampled = 0

    def use_grids(self, grids: Mapping[str, Sequence[int]]) -> None:
        """Follow the fleet's grids; a histogram whose bounds stay goes on counting."""
        self._prompt = _on_grid(self._prompt, grids.get("promptTokens", ()))
        self._output = _on_grid(self._output, grids.get("outputTokens", ()))
        self._interarrival = _on_grid(self._interarrival, _seconds(grids.get("interarrivalMicroseconds"), 1e6))
        self._latency = _on_grid(self._latency, _seconds(grids.get("latencyMilliseconds"), 1e3))

    def arrived(self, now: float) -> None:
        """A request came in; it will be placed or refused exactly once."""
        if self._last_arrival is not None:
            self._interarrival.observe(max(0.0, now - self._last_arrival))
        self._last_arrival = now

    def placed(self, outcome: Outcome) -> None:
        """A request got its outcome."""
        self._outcomes[outcome] += 1

    def queued(self, seconds: float) -> None:
        """A request left the queue after this long."""
        self._queue.observe(seconds)

    def ended(self, usage: Usage | None, seconds: float | None) -> None:
        """A response ended: its ``usage`` where it was sampled, ``seconds`` from its arrival where its end was seen."""
        self._finished += 1
        if seconds is not None:
            self._latency.observe(max(0.0, seconds))
        if usage is not None:
            self._sampled += 1
            self._prompt.observe(usage.prompt_tokens)
            self._output.observe(usage.output_tokens)

    @property
    def mean_prompt_tokens(self) -> int:
        """Of the sampled answers; 0 where none was."""
        return round(self._prompt.total / self._sampled) if self._sampled else 0

    def values(self) -> ClassValues:
        """A copy that no later event changes."""
        return ClassValues(
            dict(self._outcomes), self._prompt.values(), self._output.values(), self._finished, self._sampled,
            self._interarrival.values(), self._queue.values(), self._latency.values(),
        )  # fmt: skip


def _seconds(bounds: Sequence[int] | None, per_second: float) -> tuple[float, ...]:
    return SECONDS if bounds is None else tuple(bound / per_second for bound in bounds)


def _on_grid(histogram: Histogram, bounds: Sequence[float]) -> Histogram:
    return histogram if histogram.bounds == tuple(bounds) else Histogram(bounds)
