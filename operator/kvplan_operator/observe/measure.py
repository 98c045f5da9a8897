"""One look at a fleet: queries, engines and routers at once, put together as ``Measured``.

Inputs: the fleet, its classes, the cluster as the watches have it, ``Sources``, the time, what was measured before.
Output: a ``Measured`` with a fact for everything, after at most ``deadline_seconds``. Never raises for what another
server does, and never for what a fleet names wrongly: that becomes the reason of the facts.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.engine_pods import pod_beginnings, pods_by_configuration
from kvplan_operator.model.fleet_queries import Ask, fleet_queries, rate_window_seconds
from kvplan_operator.model.measurement import Looked, measured_from
from kvplan_operator.model.problem import belongs
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.series import Reply, Unanswered
from kvplan_operator.model.snapshot import ClusterView, Measured
from kvplan_operator.observe.engines import look_at_engines
from kvplan_operator.observe.http import PodHttp
from kvplan_operator.observe.profile import NamedConnection, PrometheusSettings
from kvplan_operator.observe.prometheus import Prometheus
from kvplan_operator.observe.routers import look_at_routers
from kvplan_solver.errors import InvalidInput


@dataclass
class Sources:
    """Where measurements come from; made once, used by all fleets, an asynchronous context.

    Attributes:
        settings: connections to Prometheus.
        http: for pods.
        deadline_seconds: longest look at Prometheus; what has not answered by then is unanswered.
    """

    settings: PrometheusSettings
    http: PodHttp = field(default_factory=PodHttp)
    deadline_seconds: float = 20.0
    _open: dict[NamedConnection, Prometheus] = field(default_factory=dict, repr=False)

    async def __aenter__(self) -> Self:
        """Open the client for pods."""
        await self.http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self.http.__aexit__(kind, error, trace)
        for connection in self._open.values():
            connection.close()

    def prometheus_of(self, fleet: ServingFleet) -> Prometheus:
        """The connection of a fleet, shared by all that use its profile.

        Raises:
            InvalidInput: an unknown profile, or an address that the operator does not allow.
        """
        wanted = self.settings.connection_of(fleet)
        if wanted not in self._open:
            self._open[wanted] = Prometheus(*wanted)
        return self._open[wanted]


async def measure(
    fleet: ServingFleet,
    classes: Sequence[RequestClass],
    view: ClusterView,
    sources: Sources,
    now: float,
    previous: Measured | None = None,
) -> Measured:
    """What Prometheus, engines and routers say of a fleet.

    Args:
        fleet: the fleet.
        classes: RequestClasses of its namespace; those of other fleets are left out.
        view: its pods and nodes.
        sources: open connections.
        now: seconds since the epoch.
        previous: what the last look found; what is not new is kept from it as Stale.
    """
    before, own = previous or Measured(), tuple(c for c in classes if belongs(c, fleet))
    replies, engines, routers = await asyncio.gather(
        _ask_prometheus(fleet, own, view, sources, now),
        look_at_engines(fleet, view.pods, sources.http, now, before.engines),
        look_at_routers(fleet, view.pods, sources.http, sources.settings, now, before.routers),
    )
    looked = Looked(fleet, own, view.pods, replies, engines, routers, before)
    # Pure but not always quick: thousands of keys, hundreds of classes.
    return await asyncio.to_thread(measured_from, looked)


async def look_at_pods(
    fleet: ServingFleet, view: ClusterView, sources: Sources, now: float, previous: Measured
) -> Measured:
    """What was measured before, with engines and routers asked again: for a rollout that waits for them."""
    engines, routers = await asyncio.gather(
        look_at_engines(fleet, view.pods, sources.http, now, previous.engines),
        look_at_routers(fleet, view.pods, sources.http, sources.settings, now, previous.routers),
    )
    return replace(previous, engines=engines, routers=routers)


async def _ask_prometheus(
    fleet: ServingFleet, classes: tuple[RequestClass, ...], view: ClusterView, sources: Sources, now: float
) -> Replies:
    engines = pod_beginnings(pods_by_configuration(fleet, view.pods))
    try:
        prometheus, queries = sources.prometheus_of(fleet), fleet_queries(fleet, classes, engines)
    except InvalidInput as error:
        return Replies(_all_unanswered(str(error)), "prometheus", now)
    source = f"prometheus {prometheus.name}"
    replies = await prometheus.query_all(queries, sources.deadline_seconds)
    return Replies(replies, source, now, rate_window_seconds(fleet))


def _all_unanswered(why: str) -> Mapping[str, Reply]:
    return dict.fromkeys(Ask, Unanswered(why))
