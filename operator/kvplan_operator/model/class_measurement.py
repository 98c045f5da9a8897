"""What was measured of one class, from the routers' series.

Inputs: the class and its fleet, ``Replies``, ``Sight``, the fact before. Output: a ``Fact``. λ is the growth of the
request counter over the time it has counted, so that a router that started a minute ago does not read as a tenth of its
traffic. A counter that does not grow is a rate of 0 once it has counted for a while; one that has just begun, or is not
there, is no data. Lengths that an idle
window does not have are those of the window before. Pure.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_status import ObservedLatency
from kvplan_operator.model.burstiness import arrival_scv
from kvplan_operator.model.calibration import EngineSums
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.fitted_limits import HEADROOM, next_step
from kvplan_operator.model.fleet_queries import (
    STEP_SECONDS,
    Ask,
    RouterPart,
    lengths_key,
    own_histogram,
)
from kvplan_operator.model.histograms import Histogram
from kvplan_operator.model.lengths import LengthSamples
from kvplan_operator.model.measured_facts import kept, partly
from kvplan_operator.model.promql import PART
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.router_sight import Sight
from kvplan_operator.model.snapshot import ClassMeasured, Fact, Quality
from kvplan_solver.radius import suggested_radius

RADIUS_PERIOD_SECONDS = 300
"""Time between two estimates of a class's radius."""
PATIENCE_SECONDS = 90
"""Age up to which the last whole value is kept when one query has no answer: the next look may have all of them."""
IDLE_SECONDS = 60
"""Time without a request from which a rate of 0 is believed; below that, clients may not have come yet."""
_SEED = 0
_OPTIONAL = (Ask.INTERARRIVAL, Ask.PROMPT_TOKENS, Ask.LATENCY)


def measured_classes(
    fleet: ServingFleet,
    classes: tuple[RequestClass, ...],
    replies: Replies,
    sight: Sight,
    engines: EngineSums,
    before: Mapping[str, Fact[ClassMeasured]],
) -> dict[str, Fact[ClassMeasured]]:
    """A fact for every class, by name."""
    return {
        c.metadata.name: _fact(_Look(fleet, c, replies, engines), sight, before.get(c.metadata.name)) for c in classes
    }


def counted_seconds(replies: Replies, class_name: str) -> float:
    """How long the class's counter has counted within the window of rates; 0 where there is none."""
    since = replies.answer(Ask.COUNTED_SINCE).of_class(class_name)
    if not since:
        return 0.0
    seconds = since[0].evaluated - since[0].value
    # Steps of the subquery hide up to one step at the begin of a full window.
    whole = seconds >= replies.rate_window_seconds - 2 * STEP_SECONDS
    return float(replies.rate_window_seconds) if whole else max(float(STEP_SECONDS), seconds)


def _fact(look: "_Look", sight: Sight, before: Fact[ClassMeasured] | None) -> Fact[ClassMeasured]:
    replies = look.replies
    if sight.unusable:
        return kept(before, replies.source, replies.now, sight.unusable)
    rate = look.rate()
    if rate is None:
        return kept(before, replies.source, replies.now, f"no router counts requests of class {look.name} yet")
    asked = (Ask.ROUTER_SUMS, look.lengths_ask, *_OPTIONAL)
    trouble = replies.trouble(*asked)
    if trouble and _can_wait(before, replies.now):
        return kept(before, replies.source, replies.now, trouble)
    lacking = "; ".join(filter(None, [sight.lacking, replies.doubts(*asked)]))
    return partly(look.measured(rate, before), replies.source, sight.seen, lacking)


def _can_wait(before: Fact[ClassMeasured] | None, now: float) -> bool:
    """Whether a whole value is recent enough to stand in for one that lacks a part."""
    if before is None or before.value is None or before.quality is Quality.PARTIAL:
        return False
    return before.age_seconds(now) < PATIENCE_SECONDS


class _Look:
    """One class in the replies."""

    def __init__(self, fleet: ServingFleet, request_class: RequestClass, replies: Replies, engines: EngineSums) -> None:
        self.fleet, self.request_class, self.replies, self.engines = fleet, request_class, replies, engines
        self.name = request_class.metadata.name
        self._own, self._longest = own_histogram(request_class) is not None, request_class.spec.tokens.max_output

    @property
    def lengths_ask(self) -> str:
        """The query that its output lengths come from."""
        return lengths_key(self.name) if self._own else Ask.OUTPUT_TOKENS

    def rate(self) -> float | None:
        """λ; None where no router counts the class, or none has counted a request yet."""
        grown, seconds = self._sum(RouterPart.ARRIVALS), counted_seconds(self.replies, self.name)
        if grown is None or seconds <= 0 or (grown <= 0 and seconds < IDLE_SECONDS):
            return None
        return max(0.0, grown) / seconds

    def measured(self, rate: float, fact: Fact[ClassMeasured] | None) -> ClassMeasured:
        """Everything about the class, with what this window lacks taken from the fact before."""
        before = fact.value if fact else None
        lengths = self._output(self.lengths_ask)
        new = ClassFacts(
            requests_per_second=rate,
            arrival_scv=self._scv(rate),
            output_lengths=lengths.samples if lengths else None,
            suggested_radius_tokens=self._radius(lengths) if self._radius_due(fact) else None,
        )
        new = self._with_prompt(new)
        facts = new.completed_by(before.facts) if before else new
        counted = self._buckets(self.lengths_ask)
        samples = math.floor(counted.total) if counted and lengths else (before.samples if before else 0)
        return ClassMeasured(facts, samples, self._latency() or (before.latency if before else None))

    def _sum(self, part: RouterPart) -> float | None:
        sums = self.replies.answer(Ask.ROUTER_SUMS).of_class(self.name)
        return next((one.value for one in sums if one.labels.get(PART) == part), None)

    def _buckets(self, ask: str) -> Histogram | None:
        """The class's histogram; one that the class names has no label ``class`` left."""
        found = self.replies.histogram(ask, None if ask == lengths_key(self.name) else self.name)
        return found if found is not None and found.total >= 1 else None

    def _output(self, ask: str) -> LengthSamples | None:
        found = self._buckets(ask)
        return found.samples(self._longest) if found else None

    def _radius_due(self, before: Fact[ClassMeasured] | None) -> bool:
        """Resampling takes milliseconds and lengths move slowly: once per period, by the clock of the looks."""
        if before is None or before.value is None or before.value.facts.suggested_radius_tokens is None:
            return True
        return before.seen // RADIUS_PERIOD_SECONDS != self.replies.now // RADIUS_PERIOD_SECONDS

    def _radius(self, lengths: LengthSamples | None) -> float | None:
        """ε from noise, drift against the window before and the resolution of the edges; only where ``auto`` asks."""
        if lengths is None or not self.fleet.spec.uncertainty.radius.auto:
            return None
        # Of a histogram that the class names, the window before is not asked for: the noise alone is told.
        before = None if self._own else self._buckets(Ask.OUTPUT_TOKENS_BEFORE)
        now = self._buckets(self.lengths_ask)
        windows = [one.samples_on_edges(self._longest) for one in (before, now) if one is not None]
        return suggested_radius(windows, _SEED).tokens + lengths.error_tokens

    def _scv(self, rate: float) -> float | None:
        gaps, seconds = self._buckets(Ask.INTERARRIVAL), self._sum(RouterPart.GAP_SECONDS)
        return None if gaps is None or seconds is None else arrival_scv(rate, gaps, seconds)

    def _with_prompt(self, facts: ClassFacts) -> ClassFacts:
        """Mean (exact), P95, and the longest with the headroom that a fit gives; None beyond the edges."""
        found, tokens = self._buckets(Ask.PROMPT_TOKENS), self._sum(RouterPart.PROMPT_TOKENS)
        if found is None or tokens is None:
            return facts
        p95, highest = found.quantile(0.95), found.highest
        return replace(
            facts,
            prompt_mean=tokens / found.total,
            prompt_p95=math.ceil(p95) if math.isfinite(p95) else None,
            prompt_max=next_step(max(highest, HEADROOM * p95)) if math.isfinite(highest) else None,
        )

    def _latency(self) -> ObservedLatency | None:
        """Response times of the class; token times are those of all the fleet's engines, which know no classes."""
        found, seconds = self._buckets(Ask.LATENCY), self._sum(RouterPart.LATENCY_SECONDS)
        seen = ObservedLatency(
            mean_milliseconds=_milliseconds(seconds / found.total) if found and seconds is not None else None,
            p50_milliseconds=_milliseconds(found.quantile(0.5)) if found else None,
            p99_milliseconds=_milliseconds(found.quantile(0.99)) if found else None,
            first_token_milliseconds=_milliseconds(self.engines.first_token_seconds),
            decode_microseconds_per_token=_microseconds(self.engines.decode_seconds_per_token),
        )
        return None if seen == ObservedLatency() else seen


def _milliseconds(seconds: float | None) -> int | None:
    return round(seconds * 1_000) if seconds is not None and math.isfinite(seconds) else None


def _microseconds(seconds: float | None) -> int | None:
    return max(1, round(seconds * 1_000_000)) if seconds is not None else None
