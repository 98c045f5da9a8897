"""The core's plain values as Prometheus families, made when they are asked for.

In: a moment of the router. Out: families named as docs/metrics.md lists them (09-contracts "Metrics"). Labels are
fleet, class, outcome, slot, reason and the hash of a counted key: nothing a client writes. Must not keep anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kvplan_router.core.histogram import HistogramValues
from kvplan_router.core.measure import ClassValues
from kvplan_router.core.state import RouterState
from kvplan_router.core.traffic import Measurements
from kvplan_router.transport.messages import InFlightMode
from kvplan_solver.cacheroute.keys import to_hex

_BY_FLEET = ["fleet"]
_BY_CLASS = ["fleet", "class"]
_BY_SLOT = ["fleet", "slot"]
_BY_KEY = ["fleet", "class", "key"]


@dataclass(frozen=True)
class Moment:
    """Everything one page shows.

    Attributes:
        state: of the core.
        measured: of the traffic.
        table_age_seconds: since the table in force was installed; None before the first.
        refusals: refused tables by reason.
        in_flight_mode: how requests are counted.
        estimate_error: by slot, requests in flight by estimate less those the engine held, at the last reading; empty
            where the count is exact.
    """

    state: RouterState
    measured: Measurements
    table_age_seconds: float | None
    refusals: Mapping[str, int]
    in_flight_mode: InFlightMode
    estimate_error: Mapping[str, int] = field(default_factory=dict)


class RouterCollector(Collector):
    """Makes the families of one page."""

    def __init__(self, fleet: str, moment: Moment) -> None:
        self._fleet, self._moment = fleet, moment

    def collect(self) -> Iterator[Metric]:
        """The families of the moment."""
        moment = self._moment
        yield from self._requests(moment.measured.classes)
        yield from self._lengths(moment.measured.classes)
        yield from self._keys(moment.measured)
        yield from self._slots(moment.state)
        error = "Requests in flight by estimate, less those the engine held at the last reading."
        yield self._by_slot("in_flight_estimate_error", error, moment.estimate_error)
        yield from self._table(moment)

    def _requests(self, classes: Mapping[str, ClassValues]) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "kvplan_router_requests",
            "First arrivals by class and by how they were placed.",
            labels=[*_BY_CLASS, "outcome"],
        )
        for name, values in classes.items():
            for outcome, count in values.outcomes.items():
                requests.add_metric([self._fleet, name, outcome.value], count)
        yield requests
        yield self._histograms(
            "interarrival_seconds", "Time between arrivals.", {n: v.interarrival_seconds for n, v in classes.items()}
        )
        yield self._histograms(
            "queue_seconds",
            "Time in the queue, of requests that waited.",
            {n: v.queue_seconds for n, v in classes.items()},
        )
        yield self._histograms(
            "latency_seconds",
            "Time from arrival to the last byte of the answer, where that was seen.",
            {n: v.latency_seconds for n, v in classes.items()},
        )

    def _lengths(self, classes: Mapping[str, ClassValues]) -> Iterator[Metric]:
        yield self._histograms(
            "prompt_tokens", "Prompt tokens, of the sampled answers.", {n: v.prompt_tokens for n, v in classes.items()}
        )
        yield self._histograms(
            "output_tokens", "Output tokens, of the sampled answers.", {n: v.output_tokens for n, v in classes.items()}
        )
        ratio = GaugeMetricFamily(
            "kvplan_router_output_sampling_ratio", "Answers whose tokens were seen, of all.", labels=_BY_CLASS
        )
        for name, values in classes.items():
            if values.finished:
                ratio.add_metric([self._fleet, name], values.sampled / values.finished)
        yield ratio

    def _keys(self, measured: Measurements) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "kvplan_router_key_requests", "Arrivals of a counted key since it entered the counted set.", labels=_BY_KEY
        )
        error = GaugeMetricFamily(
            "kvplan_router_key_error", "Arrivals by which the sketch may overestimate a counted key.", labels=_BY_KEY
        )
        for key in measured.keys:
            labels = [self._fleet, key.class_name, to_hex(key.key)]
            requests.add_metric(labels, key.arrivals)
            error.add_metric(labels, key.error)
        yield from (requests, error)
        reuse = HistogramMetricFamily(
            "kvplan_router_reuse_gap_seconds",
            "Tokens by the time since their key was last asked for.",
            labels=_BY_FLEET,
        )
        _add(reuse, [self._fleet], measured.reuse.gaps)
        yield reuse
        first = "Tokens of keys asked for the first time."
        yield self._counter("reuse_first_tokens", first, measured.reuse.first_tokens)

    def _slots(self, state: RouterState) -> Iterator[Metric]:
        yield self._by_slot("in_flight", "Requests sent to a slot and not finished.", state.in_flight)
        yield self._by_slot("reserved_tokens", "KV tokens reserved on a slot.", state.reserved)
        yield self._by_slot("limit_tokens", "KV tokens this process may reserve on a slot.", state.limits)
        yield self._gauge("waiting", "Requests that wait for room.", state.waiting)
        elsewhere = "Requests that another destination answered than was picked."
        yield self._counter("served_elsewhere", elsewhere, state.served_elsewhere)

    def _table(self, moment: Moment) -> Iterator[Metric]:
        epoch, generation = moment.state.acknowledged
        yield self._gauge("table_epoch", "Epoch of the table acknowledged, seconds.", epoch)
        yield self._gauge("table_generation", "Generation of the table acknowledged.", generation)
        if moment.table_age_seconds is not None:
            yield self._gauge(
                "table_age_seconds", "Time since the table in force was installed.", moment.table_age_seconds
            )
        refused = CounterMetricFamily(
            "kvplan_router_table_refusals", "Tables refused, by reason.", labels=[*_BY_FLEET, "reason"]
        )
        for reason, count in moment.refusals.items():
            refused.add_metric([self._fleet, reason], count)
        yield refused
        mode = GaugeMetricFamily(
            "kvplan_router_in_flight_mode", "1 for the way requests in flight are counted.", labels=[*_BY_FLEET, "mode"]
        )
        for each in InFlightMode:
            mode.add_metric([self._fleet, each.value], float(each is moment.in_flight_mode))
        yield mode

    def _histograms(self, name: str, about: str, by_class: Mapping[str, HistogramValues]) -> Metric:
        family = HistogramMetricFamily(f"kvplan_router_{name}", about, labels=_BY_CLASS)
        for class_name, values in by_class.items():
            _add(family, [self._fleet, class_name], values)
        return family

    def _by_slot(self, name: str, about: str, values: Mapping[str, int]) -> Metric:
        family = GaugeMetricFamily(f"kvplan_router_{name}", about, labels=_BY_SLOT)
        for slot, value in values.items():
            family.add_metric([self._fleet, slot], value)
        return family

    def _gauge(self, name: str, about: str, value: float) -> Metric:
        family = GaugeMetricFamily(f"kvplan_router_{name}", about, labels=_BY_FLEET)
        family.add_metric([self._fleet], value)
        return family

    def _counter(self, name: str, about: str, value: float) -> Metric:
        family = CounterMetricFamily(f"kvplan_router_{name}", about, labels=_BY_FLEET)
        family.add_metric([self._fleet], value)
        return family


def _add(family: HistogramMetricFamily, labels: list[str], values: HistogramValues) -> None:
    """Add one histogram, its buckets cumulated."""
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip((*values.bounds, float("inf")), values.counts, strict=True):
        below += count
        buckets.append(("+Inf" if bound == float("inf") else repr(float(bound)), below))
    family.add_metric(labels, buckets, values.total)
