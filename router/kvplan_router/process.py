"""The life of one router process: open, load, serve, drain, close.

In: settings, secret, a table source, perhaps the cluster's word on pods. Out: nothing; it returns when SIGTERM has been
served. Once the engines' gauges are read it is SERVING while the table in force gives it a share of the budgets, and
ready from the first share on. Where none comes for long it is ready without: gateways then answer without a plan, which
is better than not at all. Source: 05-router §7.
"""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from random import Random

from aiohttp import ClientSession

from kvplan_router import tasks
from kvplan_router.admin.server import AdminServer
from kvplan_router.core.decide import Router
from kvplan_router.core.settings import CoreSettings
from kvplan_router.destinations.engines import Engines
from kvplan_router.exchange.peers import Peers
from kvplan_router.guarded import GuardedRouter
from kvplan_router.service import Service
from kvplan_router.settings import RouterSettings, split_address
from kvplan_router.source.interface import TableSource
from kvplan_router.transport.choice import open_transport
from kvplan_router.transport.estimate import EstimatedEnds
from kvplan_router.transport.health import HealthServer
from kvplan_router.transport.messages import InFlightMode

log = logging.getLogger(__name__)


Readiness = Callable[[], AsyncIterator[frozenset[str]]]
"""Follows the uids of ready pods."""


async def serve(settings: RouterSettings, secret: bytes, source: TableSource, pods: Readiness | None = None) -> None:
    """Run a router until SIGTERM or SIGINT.

    Args:
        settings: of the process.
        secret: of the key hash.
        source: of tables.
        pods: says which pods are ready; None where nobody does.

    Raises:
        OSError: an address is taken, or a file cannot be used.
        InvalidInput: the secret is too short or too long.
    """
    stopping = _stop_signal()
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(ClientSession())
        process = _Process(settings, secret, source, Engines(session))
        await process.open(stack)
        running = asyncio.create_task(process.run(pods))
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await process.drain()
        running.cancel()
        stopped.cancel()
        await asyncio.wait({running})
        if not running.cancelled():
            running.result()


def _stop_signal() -> asyncio.Event:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


class _Process:
    """Everything that is opened, in the order in which it is."""

    def __init__(self, settings: RouterSettings, secret: bytes, source: TableSource, engines: Engines) -> None:
        rng = Random()  # noqa: S311 - spreads load, guards nothing
        self._settings, self._engines = settings, engines
        self._router = GuardedRouter(Router(secret, _core_settings(settings), rng))
        early = settings.in_flight is InFlightMode.EARLY_CLOSE
        self._estimate = EstimatedEnds(self._router, time.monotonic) if early else None
        self._transport = open_transport(settings, self._estimate or self._router, rng)
        self._service = Service(settings, self._router, self._transport, source, secret)
        self._service.estimate_error = self._estimate.error if self._estimate else {}
        self._health = HealthServer()
        self._peers = Peers(settings.identity, secret)
        self._serving = self._draining = False

    async def open(self, stack: AsyncExitStack) -> None:
        """Listen everywhere, NOT_SERVING."""
        settings = self._settings
        admin = AdminServer(self._service.pages())
        stack.push_async_callback(admin.stop)
        await admin.start(*split_address("admin", settings.admin))
        if settings.health:
            stack.push_async_callback(self._health.stop)
            await self._health.start(settings.health)
        if settings.exchange:
            stack.callback(self._peers.close)
            await self._peers.open(split_address("exchange", settings.exchange))
        stack.push_async_callback(self._transport.stop)
        await self._transport.start()
        log.info("listening on %s, admin on %s", settings.listen, settings.admin)

    async def run(self, pods: Readiness | None) -> None:
        """Load a table, serve, and follow the world until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._service.keeper.run())
            await self._service.keeper.loaded.wait()
            self._service.engines_hold(await self._held())
            self._start_loops(group, pods)
            asyncio.get_running_loop().call_later(self._settings.share_patience_seconds, self._be_ready)
            await self._follow_listing()

    async def drain(self) -> None:
        """Tell gateways to go elsewhere, and let what is open end well."""
        log.info("draining")
        self._draining, self._service.ready = True, False
        await self._set_serving(False)
        await self._transport.drain(self._settings.lame_duck_seconds, self._settings.grace_seconds)

    async def _held(self) -> dict[str, int]:
        return await self._engines.requests_held(place.address for place in self._service.places)

    async def _follow_listing(self) -> None:
        """Serve while the index gives this process a share; without one it could only refuse."""
        while True:
            self._service.index_changed.clear()
            serving = self._router.state().listed and not self._draining
            await self._set_serving(serving)
            if serving:
                self._be_ready()
            await self._service.index_changed.wait()

    def _be_ready(self) -> None:
        """Gateways may send requests, unless this process is on its way out."""
        self._service.ready = not self._draining

    async def _set_serving(self, serving: bool) -> None:
        if serving != self._serving:
            log.info("serving" if serving else "not serving")
        self._serving = serving
        await self._transport.set_serving(serving)
        if self._settings.health:
            await self._health.set_serving(serving)

    def _start_loops(self, group: asyncio.TaskGroup, pods: Readiness | None) -> None:
        settings, service, router = self._settings, self._service, self._router
        group.create_task(tasks.review_keys(router))
        group.create_task(tasks.settle_leftovers(service, router, self._engines, self._peers))
        if pods is not None:
            group.create_task(tasks.follow_pods(service, pods()))
        if settings.readiness == "probe":
            group.create_task(tasks.probe_engines(service, self._engines))
        if settings.exchange:
            given = frozenset(split_address("peers", peer) for peer in settings.peers)
            group.create_task(tasks.exchange(service, router, self._peers, given, settings.identity))
        if self._estimate is not None:
            group.create_task(tasks.read_ends(service, self._estimate, self._engines, self._peers))


def _core_settings(settings: RouterSettings) -> CoreSettings:
    return CoreSettings(
        identity=settings.identity,
        session_header=settings.session_header,
        model_header=settings.model_header,
        session_hash=not settings.paper_dispatch,
        route_weights=not settings.paper_dispatch,
        longest_wait_seconds=settings.longest_wait_seconds,
    )
