"""The operator as a whole: one task per fleet while this process leads, a hot standby otherwise.

Inputs: settings, watches that say that something changed. Output: tasks. ``start`` and ``stop`` are
called by kopf's startup and cleanup. A leader that loses its Lease writes nothing from that moment and asks the process
to end; the fence makes sure of the first whatever happens to the second.
"""

import asyncio
import math
import os
import signal
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from kvplan_operator.kube.access import SERVICE_ACCOUNT
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.lease import Leadership
from kvplan_operator.kube.recorder import Recorder
from kvplan_operator.kube.reflector import Key
from kvplan_operator.kube.resources import LEADER_WORKER_SETS
from kvplan_operator.logs import FleetLog
from kvplan_operator.metrics import Metrics
from kvplan_operator.observe.measure import Sources
from kvplan_operator.reconcile.class_keeper import ClassKeeper
from kvplan_operator.reconcile.fleet_task import FleetTask
from kvplan_operator.reconcile.health import HealthServer
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.reconcile.our_kinds import OurKinds
from kvplan_operator.reconcile.services import Services
from kvplan_operator.reconcile.solver_child import Solvers
from kvplan_operator.reconcile.startup import served, wait_until_ready
from kvplan_operator.reconcile.tick import FleetLooks
from kvplan_operator.reconcile.watches import Watches
from kvplan_operator.reconcile.world import World
from kvplan_operator.reconcile.writing import Writer
from kvplan_operator.settings import Settings

LOST_THE_LEASE: Final = 1
"""Exit code of a leader that may not lead any more; the next start waits as a standby."""


@dataclass
class _Life:
    """A fleet that is looked after."""

    task: FleetTask
    running: "asyncio.Task[None]"
    memory: Memory


class Shell:
    """The operator.

    Attributes:
        exit_code: for the process; 0 unless it ends for a reason of its own.
        identity: of this process and of no other, not even its predecessor in the same pod.
    """

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        """Nothing is asked before ``start``."""
        self.exit_code = 0
        self.identity = _identity(settings.lease.identity)
        self._settings, self._metrics = settings, metrics or Metrics()
        self._known: set[Key] = set()
        self._lives: dict[Key, _Life] = {}
        self._background: list[asyncio.Task[None]] = []
        self._random = Random()  # noqa: S311 - spreads retries, guards nothing
        self._watches = Watches()
        self._keeper: FleetTask | None = None
        self._services: Services | None = None

    async def start(self) -> None:
        """Wait until the cluster is ready, follow it, and stand for leader.

        Raises:
            CannotListen: the port of the endpoints is taken.
            ClusterNotReady: CRDs or permissions are missing for too long.
        """
        settings = self._settings
        self._client = await Client.connect(kubeconfig_of(settings))
        self._leadership = self._stand()
        self._health = HealthServer(
            self._metrics.registry, self._silence, settings.echo_seconds, lambda: self._services is not None
        )
        try:
            await self._health.start(*settings.listen_address)
            await wait_until_ready(self._client, settings.namespaces, lease_namespace(settings), settings.start)
        except BaseException:
            await self._health.stop()
            await self._client.close()
            raise
        self._services = await self._connect()
        self._background = [asyncio.create_task(self._lead(self._services))]

    async def stop(self) -> None:
        """End everything; a standby takes over at once."""
        for life in self._lives.values():
            life.memory.drop()
        running = [*self._background, *(life.running for life in self._lives.values())]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._leadership.release()
        await self._health.stop()
        await self._watches.stop()
        if self._services is not None:
            self._services.solvers.close()
            await self._services.world.stop()
            await self._services.sources.__aexit__(None, None, None)
        await self._client.close()

    def fleet_changed(self, key: Key, *, gone: bool) -> None:
        """A ServingFleet was seen, changed or went."""
        self._mark_keeper()
        if gone:
            self._known.discard(key)
            self._end(key)
            self.wake(key[0], None)  # a class that two fleets select is another's now
        else:
            self._known.add(key)
            self._begin(key)
            self.wake(key[0], key[1])

    def class_changed(self, key: Key, *, gone: bool) -> None:
        """A RequestClass was seen, changed or went."""
        if gone and self._services is not None:
            self._services.world.forget_class(key)
        self._mark_keeper()
        self.wake(key[0], None)

    def plan_changed(self, key: Key, fleet: str | None, *, gone: bool) -> None:
        """A RoutingPlan was seen, changed or went."""
        if gone and self._services is not None:
            self._services.world.forget_plan(key)
        self.wake(key[0], fleet)

    def wake(self, namespace: str | None, fleet: str | None, *, urgent: bool = False) -> None:
        """Mark the fleets that may have changed; None means all of them."""
        for key, life in self._lives.items():
            if namespace in (None, key[0]) and fleet in (None, key[1]):
                life.task.mark(urgent=urgent)

    def _stand(self) -> Leadership:
        lease = self._settings.lease
        return Leadership(
            self._client,
            lease_namespace(self._settings),
            lease.name,
            self.identity,
            lease.duration_seconds,
            lease.renew_seconds,
            lease.retry_seconds,
        )

    async def _connect(self) -> Services:
        """Everything that the looks need, the caches full."""
        settings = self._settings
        place = settings.namespaces[0] if settings.namespaces else "default"
        ours = OurKinds(self._client, settings.namespaces, self)
        await self._watches.start(ours.reflectors)
        world = World(self._client, settings.namespaces, ours.objects, self.wake)
        await world.start(worker_sets_served=await served(self._client, LEADER_WORKER_SETS, place))
        solvers = Solvers(settings.solver.concurrency, watch=self._count_solves)
        solvers.start()
        sources = await Sources(settings.prometheus).__aenter__()
        fenced = self._client.fenced(self._leadership.fence)
        self._recorder = Recorder(fenced, self.identity)
        writer = Writer(fenced, self._recorder, self._metrics)
        return Services(fenced, world, sources, solvers, writer, self._metrics, time.time)

    async def _lead(self, services: Services) -> None:
        """Wait for the Lease, look after the fleets, and end the process when the Lease is lost."""
        leading = asyncio.create_task(self._leadership.run())
        try:
            waiting = asyncio.create_task(self._leadership.acquired.wait())
            await asyncio.wait([leading, waiting], return_when=asyncio.FIRST_COMPLETED)
            if self._leadership.acquired.is_set():
                self._metrics.leader.set(1)
                await self._work(services, leading)
        finally:
            leading.cancel()
            self._metrics.leader.set(0)
        self.exit_code = LOST_THE_LEASE
        signal.raise_signal(signal.SIGTERM)

    async def _work(self, services: Services, leading: "asyncio.Task[None]") -> None:
        recording = asyncio.create_task(self._recorder.run())
        keeper = ClassKeeper(services.world, services.writer, services.clock)
        self._keeper = FleetTask(keeper.tick, self._settings.ticks, FleetLog(""), self._random)
        keeping = asyncio.create_task(self._keeper.run())
        for key in sorted(self._known):
            self._begin(key)
        try:
            await asyncio.wait([leading])
        finally:
            for task in (recording, keeping):
                task.cancel()

    def _begin(self, key: Key) -> None:
        """Look after a fleet, if this process leads."""
        services = self._services
        if services is None or key in self._lives or not self._leadership.acquired.is_set():
            return
        memory = Memory(FleetLog("/".join(key)))
        looks = FleetLooks(key, services, memory, lambda: self.wake(*key), lambda: self.wake(*key, urgent=True))
        task = FleetTask(looks.tick, self._settings.ticks, memory.log, self._random)
        self._lives[key] = _Life(task, asyncio.create_task(task.run()), memory)
        self._metrics.fleets.set(len(self._lives))

    def _end(self, key: Key) -> None:
        """Look after a fleet no more: its solve is killed, its series go."""
        life = self._lives.pop(key, None)
        if life is None or self._services is None:
            return
        life.memory.drop()
        life.running.cancel()
        self._services.world.forget(key)
        self._metrics.forget("/".join(key))
        self._metrics.fleets.set(len(self._lives))

    def _mark_keeper(self) -> None:
        if self._keeper is not None:
            self._keeper.mark()

    def _silence(self) -> float:
        """For how long nothing was heard; for ever once a watch has ended by itself."""
        if self._watches.broken or (self._services is not None and self._services.world.broken):
            return math.inf
        silence = self._leadership.echo_lag_seconds
        self._metrics.echo_age.set(silence)
        return silence

    def _count_solves(self, running: int, waiting: int) -> None:
        self._metrics.solves_running.set(running)
        self._metrics.solves_waiting.set(waiting)


def _identity(wanted: str) -> str:
    return f"{wanted or f'{socket.gethostname()}-{os.getpid()}'}-{uuid.uuid4().hex[:8]}"


def lease_namespace(settings: Settings) -> str:
    """Where the Lease is: the setting, else the pod's own namespace, else ``default``."""
    own = SERVICE_ACCOUNT / "namespace"
    return settings.lease.namespace or (own.read_text().strip() if own.exists() else "default")


def kubeconfig_of(settings: Settings) -> Path | None:
    """The kubeconfig to use; None for the pod's service account."""
    if settings.kubeconfig is not None or (SERVICE_ACCOUNT / "token").exists():
        return settings.kubeconfig
    return Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
