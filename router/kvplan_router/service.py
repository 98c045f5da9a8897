"""One router process put together: the pure core, and around it whatever feeds it and tells of it.

In: settings, secret, a table source, a transport. Out: a running router. Everything here runs on one event loop; a
transport may call the core from a thread of its own. Must not decide anything. Source: 05-router §1 and §7.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from kvplan_router.admin.server import AdminPages
from kvplan_router.core.in_flight import PeerReport
from kvplan_router.destinations.slots import Place, Readiness, endpoints_of, places_of
from kvplan_router.envoy.endpoints import EndpointsFile
from kvplan_router.guarded import GuardedRouter
from kvplan_router.metrics.collector import Moment
from kvplan_router.metrics.page import render
from kvplan_router.settings import RouterSettings
from kvplan_router.source.interface import TableSource
from kvplan_router.source.keeper import TableKeeper
from kvplan_router.transport.interface import Transport
from kvplan_solver.cacheroute.keys import fingerprint
from kvplan_solver.cacheroute.router_state import RouterMode, RouterReport
from kvplan_solver.cacheroute.table import Index, Table


class Service:
    """What is in force in one process.

    Attributes:
        keeper: of the table.
        estimate_error: see :class:`Moment`.
        places: slots that can be reached.
        routers: identities of the processes that the index lists.
        ready: whether gateways may send requests.
        places_changed: set when there may be others.
        index_changed: set when another index is in force.
    """

    def __init__(
        self, settings: RouterSettings, router: GuardedRouter, transport: Transport, source: TableSource, secret: bytes
    ) -> None:
        self._settings, self._router, self._transport = settings, router, transport
        self.estimate_error: Mapping[str, int] = {}
        self._file = _endpoints_file(settings.endpoints_file)
        self._readiness = Readiness()
        self._ready_slots: frozenset[str] | None = None
        self.keeper = TableKeeper(source, self._install, fingerprint(secret))
        self.places: tuple[Place, ...] = ()
        self.routers: tuple[str, ...] = ()
        self.ready = False
        self.places_changed, self.index_changed = asyncio.Event(), asyncio.Event()

    def ready_pods(self, uids: frozenset[str]) -> None:
        """The cluster says which pods are ready."""
        self._know(Readiness(uids, self._readiness.silent))

    def silent_addresses(self, addresses: frozenset[str]) -> None:
        """A probe says who does not answer."""
        self._know(Readiness(self._readiness.pods, addresses))

    def peers(self, reports: Iterable[PeerReport]) -> None:
        """What the other processes have in flight, or that one of them fell silent."""
        self._router.peers(reports, time.monotonic())
        self._transport.look()

    def engines_hold(self, requests: dict[str, int]) -> None:
        """Requests held by engines, by address."""
        self._router.engines({p.slot: requests[p.address] for p in self.places if p.address in requests})
        self._transport.look()

    def pages(self) -> AdminPages:
        """What the admin server shows."""
        fleet = self._settings.fleet_label
        return AdminPages(lambda: partial(render, fleet, self.moment()), self.report, lambda: self.ready)

    def moment(self) -> Moment:
        """Everything the metrics page shows."""
        age = time.time() - self.keeper.since if self.keeper.since else None
        return Moment(
            self._router.state(),
            self._router.measurements(),
            age,
            dict(self.keeper.refusals),
            self._settings.in_flight,
            dict(self.estimate_error),
        )

    def report(self) -> RouterReport:
        """What operator and ``kvplan doctor`` read; the generation is the one this process fully keeps to."""
        state = self._router.state()
        epoch, generation = state.acknowledged
        return RouterReport(
            identity=self._settings.identity,
            mode=RouterMode(state.mode),
            epoch=epoch,
            generation=generation,
            since=int(self.keeper.since),
            fingerprint=state.fingerprint,
            in_flight={slot: count for slot, count in state.in_flight.items() if count},
            reserved={slot: tokens for slot, tokens in state.reserved.items() if tokens},
            table_errors=dict(self.keeper.refusals),
        )

    def _install(self, index: Index, table: Table) -> None:
        places = places_of(index.document)
        self._write_endpoints(places)  # Envoy must know a place before it is picked
        self._router.install(index, table)
        self.places = places
        self.routers = tuple(router["identity"] for router in index.document["routers"])
        self._tell_ready()
        self.places_changed.set()
        self.index_changed.set()

    def _know(self, readiness: Readiness) -> None:
        if readiness == self._readiness:
            return
        self._readiness = readiness
        self._write_endpoints(self.places)
        self._tell_ready()

    def _tell_ready(self) -> None:
        ready = self._readiness.slots(self.places)
        if ready != self._ready_slots:
            self._ready_slots = ready
            self._router.ready(ready)
        self._transport.look()

    def _write_endpoints(self, places: tuple[Place, ...]) -> None:
        if self._file is not None:
            self._file.write(endpoints_of(places, self._readiness))


def _endpoints_file(path: Path | None) -> EndpointsFile | None:
    """The file, there from the start: Envoy refuses to start without it. What an earlier process wrote stays."""
    if path is None:
        return None
    file = EndpointsFile(path)
    if not path.exists():
        file.write(())
    return file
