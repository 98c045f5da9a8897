"""Everything one tick knows of a fleet, frozen: objects from the watches, measurements from Prometheus.

Inputs: what ``observe`` gathered. Outputs: values for ``plan``, ``gate``, ``act`` and ``route``, which look at nothing
else. Each measurement is a ``Fact``: a value, or the reason why there is none, with source and the time it was true.
Zero is a value and absent is not zero. Pure data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_status import ObservedLatency
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.priors.resolve import Measurement

Object = Mapping[str, Any]
"""A Kubernetes object as the API server sent it."""

T_co = TypeVar("T_co", covariant=True)


class Quality(StrEnum):
    """How far a fact can be trusted."""

    VALUE = "Value"
    PARTIAL = "Partial"
    """A value from part of the sources only."""
    STALE = "Stale"
    """The last good value, older than it should be."""
    NO_DATA = "NoData"


@dataclass(frozen=True)
class Fact(Generic[T_co]):
    """One thing that was looked at.

    Attributes:
        value: what is known; None exactly when quality is NoData.
        quality: how far it can be trusted.
        source: who said so, for people: ``prometheus default``, ``Pod chat-0``.
        seen: when it was true, seconds since the epoch.
        detail: why it is not a plain value, a sentence; empty for Value.
    """

    value: T_co | None
    quality: Quality
    source: str
    seen: float
    detail: str = ""

    def age_seconds(self, now: float) -> float:
        """How long ago it was true."""
        return max(0.0, now - self.seen)


@dataclass(frozen=True, eq=False)
class ClassMeasured:
    """What was measured of one class.

    Attributes:
        facts: rate, lengths, burstiness, as the planner takes them.
        samples: finished requests behind the lengths.
        latency: response times beside the target; None where nothing finished.
    """

    facts: ClassFacts
    samples: int
    latency: ObservedLatency | None = None


@dataclass(frozen=True, slots=True)
class KeyMeasured:
    """One key as the routers count it.

    Attributes:
        class_name: its RequestClass.
        key: 64-bit hash.
        requests_per_second: λ_b.
        error_per_second: bound of the sketch's error.
    """

    class_name: str
    key: int
    requests_per_second: float
    error_per_second: float


@dataclass(frozen=True)
class RouterState:
    """What one live router process says of itself (``GET /state``, docs/contracts/router-state.md).

    Attributes:
        identity: of the process, as in the index's ``routers``.
        mode: none, observe or plan.
        epoch: of the index in force.
        generation: of the index in force, the least of its workers.
        fingerprint: of its hash secret.
        in_flight: requests by slot.
        reserved: KV tokens by slot.
        table_errors: indexes refused since it started.
    """

    identity: str
    mode: str
    epoch: int
    generation: int
    fingerprint: str
    in_flight: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    table_errors: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """(epoch, generation) of the index in force."""
        return self.epoch, self.generation


@dataclass(frozen=True)
class EngineState:
    """What one engine says of itself.

    Attributes:
        kv_capacity_tokens: M of the group, (blocks − 1) · block size; None before it has a cache.
        running: requests it runs.
        waiting: requests that wait in it.
        version: of vLLM; None where it does not say.
    """

    kv_capacity_tokens: int | None
    running: int
    waiting: int
    version: str | None = None


@dataclass(frozen=True, eq=False)
class ClusterView:
    """The objects that matter to one fleet, from the watches.

    Attributes:
        nodes: every Node.
        pods: every Pod that is bound or belongs to the fleet, foreign ones too: they hold GPUs.
        deployments: the fleet's own (by label) and the adopted ones (by name).
        worker_sets: the fleet's LeaderWorkerSets (by label).
        autoscalers: HorizontalPodAutoscalers of the namespace.
        template: the object that ``engine.templateRef`` names; None where absent or not named.
        config_maps: those labelled with the fleet, by name.
        worker_sets_served: whether the LeaderWorkerSet API exists.
        other_sets: engine sets of other fleets, of all namespaces, that may wait for GPUs they were promised.
        adopted_elsewhere: Deployments of the namespace that a fleet earlier by name adopts, with that fleet.
    """

    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    deployments: tuple[Object, ...] = ()
    worker_sets: tuple[Object, ...] = ()
    autoscalers: tuple[Object, ...] = ()
    template: Object | None = None
    config_maps: Mapping[str, Object] = field(default_factory=dict)
    worker_sets_served: bool = False
    other_sets: tuple[Object, ...] = ()
    adopted_elsewhere: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Measured:
    """What Prometheus, engines and routers said; everything by name.

    Attributes:
        classes: by class name.
        configurations: speeds and capacity by configuration name.
        keys: the hot keys.
        reuse_gap: token-weighted histogram of reuse gaps: (upper bounds in seconds, tokens per bucket).
        engine_finish_rate: requests per second that the engines finish, to hold against the routers' count.
        router_rate: requests per second that the routers count, those of no class too.
        engines: by pod uid.
        routers: by pod name (or URL), one per live router.
    """

    classes: Mapping[str, Fact[ClassMeasured]] = field(default_factory=dict)
    configurations: Mapping[str, Fact[Measurement]] = field(default_factory=dict)
    keys: Fact[tuple[KeyMeasured, ...]] | None = None
    reuse_gap: Fact[tuple[tuple[float, ...], tuple[float, ...]]] | None = None
    engine_finish_rate: Fact[float] | None = None
    router_rate: Fact[float] | None = None
    engines: Mapping[str, Fact[EngineState]] = field(default_factory=dict)
    routers: Mapping[str, Fact[RouterState]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One look at a fleet.

    Attributes:
        now: when, seconds since the epoch.
        fleet: the ServingFleet.
        resource_version: of the fleet; every write about it carries this.
        classes: RequestClasses of its namespace.
        plans: RoutingPlans of the fleet.
        cluster: objects around it.
        measured: measurements.
    """

    now: float
    fleet: ServingFleet
    resource_version: str
    classes: tuple[RequestClass, ...]
    plans: tuple[RoutingPlan, ...]
    cluster: ClusterView
    measured: Measured
