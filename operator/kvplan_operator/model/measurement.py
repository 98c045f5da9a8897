"""Everything that was measured of a fleet, put together from replies and from what pods said of themselves.

Inputs: the fleet, its classes, pods, ``Replies``, engine and router facts, the ``Measured`` before. Output: a new
``Measured`` with a fact for everything: nothing is dropped silently, and nothing old looks new. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.calibration import (
    EngineSums,
    completed,
    engine_sums,
    least_capacity,
    mean_batch,
    measurement,
)
from kvplan_operator.model.class_measurement import counted_seconds, measured_classes
from kvplan_operator.model.engine_pods import pods_by_configuration
from kvplan_operator.model.fleet_queries import Ask, EnginePart, RouterPart
from kvplan_operator.model.key_measurement import measured_keys, measured_reuse_gaps
from kvplan_operator.model.measured_facts import kept, partly
from kvplan_operator.model.pods import Object
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.promql import PART
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.router_sight import Sight, router_sight
from kvplan_operator.model.snapshot import EngineState, Fact, Measured, RouterState

_ENGINE_ASKS = (Ask.ENGINE_SUMS, Ask.ENGINE_CACHES, Ask.ENGINE_BATCHES)


@dataclass(frozen=True, eq=False)
class Looked:
    """What one look at a fleet brought home.

    Attributes:
        fleet: the fleet.
        classes: its RequestClasses.
        pods: from the watches.
        replies: of Prometheus.
        engines: by pod uid.
        routers: by pod name or URL.
        before: what was measured last time.
    """

    fleet: ServingFleet
    classes: tuple[RequestClass, ...]
    pods: tuple[Object, ...]
    replies: Replies
    engines: Mapping[str, Fact[EngineState]] = field(default_factory=dict)
    routers: Mapping[str, Fact[RouterState]] = field(default_factory=dict)
    before: Measured = field(default_factory=Measured)


def measured_from(look: Looked) -> Measured:
    """The measurements of a fleet."""
    replies, before = look.replies, look.before
    sight = router_sight(look.fleet, look.pods, replies)
    by_configuration = pods_by_configuration(look.fleet, look.pods)
    every_pod = [name for names in by_configuration.values() for name in names]
    together = engine_sums(replies.answer(Ask.ENGINE_SUMS).finite, every_pod)
    names = {c.metadata.name for c in look.classes}
    return Measured(
        classes=measured_classes(look.fleet, look.classes, replies, sight, together, before.classes),
        configurations={
            name: _configuration(replies, pods, before.configurations.get(name))
            for name, pods in by_configuration.items()
        },
        keys=measured_keys(names, replies, sight, before.keys),
        reuse_gap=measured_reuse_gaps(replies, sight, before.reuse_gap),
        engine_finish_rate=_finish_rate(replies, together, every_pod, before.engine_finish_rate),
        router_rate=_router_rate(replies, sight, before.router_rate),
        engines=look.engines,
        routers=look.routers,
    )


def _configuration(replies: Replies, pods: list[str], before: Fact[Measurement] | None) -> Fact[Measurement]:
    """Speeds and capacity of one configuration; an engine's own figures outlive an idle window."""
    trouble = replies.trouble(*_ENGINE_ASKS)
    sums = engine_sums(replies.answer(Ask.ENGINE_SUMS).finite, pods)
    batch = mean_batch(replies.answer(Ask.ENGINE_BATCHES).finite, pods)
    new = measurement(sums, least_capacity(replies.answer(Ask.ENGINE_CACHES).finite, pods), batch)
    if trouble or new == Measurement():
        why = trouble or ("its engines finished too little to tell" if pods else "no engine of it runs")
        return kept(before, replies.source, replies.now, why)
    value = completed(new, before.value if before else None)
    return partly(value, replies.source, replies.now, replies.doubts(*_ENGINE_ASKS))


def _finish_rate(replies: Replies, sums: EngineSums, pods: list[str], before: Fact[float] | None) -> Fact[float]:
    """Requests per second that the engines finish; without an engine that is 0."""
    trouble = replies.trouble(Ask.ENGINE_SUMS)
    if trouble or (pods and EnginePart.FINISHED not in sums.totals):
        why = trouble or "no engine of the fleet is scraped: give its series the labels namespace and pod"
        return kept(before, replies.source, replies.now, why)
    rate = sums[EnginePart.FINISHED] / replies.rate_window_seconds
    return partly(rate, replies.source, replies.now, replies.doubts(Ask.ENGINE_SUMS))


def _router_rate(replies: Replies, sight: Sight, before: Fact[float] | None) -> Fact[float]:
    """Requests per second that the routers count, whatever their class."""
    sums = replies.answer(Ask.ROUTER_SUMS).finite
    counted = [one for one in sums if one.labels.get(PART) == RouterPart.ARRIVALS]
    if sight.unusable or not counted:
        return kept(before, replies.source, replies.now, sight.unusable or "no router counts requests yet")
    seconds = ((one.value, counted_seconds(replies, one.labels.get("class", ""))) for one in counted)
    rate = sum(max(0.0, grown) / over for grown, over in seconds if over > 0)
    return partly(rate, replies.source, sight.seen, sight.lacking)
