"""Leadership by a Lease: one process writes, a hot standby waits.

Inputs: a client, the Lease's place, the identity of this process, a clock that is never set. Outputs: ``fence``, to
fence a client with; ``run``, which ends by ``LeadershipLost``; ``echo``, the proof that the watch still tells what is
written. A process leads at most once: when it lost the Lease it is to end. The rules are in ``election``.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import NoReturn

from kvplan_operator.kube import election
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.clocks import Clock, boot_clock, micro_time, wall_clock
from kvplan_operator.kube.election import Lease, Sighting, Timing
from kvplan_operator.kube.errors import Conflict, KubeError, NotFound
from kvplan_operator.kube.fence import Fence
from kvplan_operator.kube.reflector import Key, Reflector
from kvplan_operator.kube.resources import LEASES

_LOG = logging.getLogger(__name__)


class Leadership:
    """The wish of one process to lead.

    Attributes:
        fence: holds while this process may write; ``term`` numbers the leadership.
        acquired: set when this process leads.
        echo: when a change of the Lease last came through the watch, by the clock.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        duration: float = 15.0,
        renew: float = 10.0,
        retry: float = 2.0,
        clock: Clock = boot_clock,
        wall: Callable[[], datetime] = wall_clock,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """Prepare; nothing is asked before ``run``.

        Args:
            client: not fenced.
            namespace: of the Lease.
            name: of the Lease.
            identity: of this process and of no other, not even its predecessor in the same pod.
            duration: seconds without a renewal until others may take over.
            renew: seconds without a renewal until this process stops writing.
            retry: seconds between renewals.
            clock: for every decision.
            wall: for people, in the Lease.
            rng: for pauses, draws from [0, 1).

        Raises:
            ValueError: unless 0 < retry < renew < duration.
        """
        self._client, self._namespace, self._name, self._identity = client, namespace, name, identity
        self._timing, self._clock, self._wall, self._rng = Timing(duration, renew, retry), clock, wall, rng
        self._watch: Reflector[Object] = Reflector(
            client,
            LEASES,
            namespace=namespace,
            fields=f"metadata.name={name}",
            on_change=self._hear,
            silence_seconds=2 * duration,
            clock=clock,
        )
        self._seen: Sighting | None = None
        self._changed = asyncio.Event()
        self._held: Lease = {}
        self._unechoed: float | None = None
        self.fence = Fence(clock)
        self.acquired = asyncio.Event()
        self.echo = float("-inf")

    @property
    def echo_lag_seconds(self) -> float:
        """For how long a renewal of ours has not come back through the watch; 0 when all did.

        More than a few seconds mean that the watch is dead while requests work.
        """
        return 0.0 if self._unechoed is None else max(0.0, self._clock() - self._unechoed)

    async def run(self) -> NoReturn:
        """Wait for the Lease, then keep it.

        Raises:
            LeadershipLost: when it is lost; ``fence`` never holds again.
        """
        watch = asyncio.create_task(self._watch.run())
        try:
            await self._acquire()
            await self._keep()
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def release(self) -> None:
        """Write no more and let a standby take over at once; for a clean end, after ``run`` was cancelled."""
        held = self.fence.holds
        self.fence.drop()
        if held:
            with suppress(KubeError, TimeoutError):
                async with asyncio.timeout(self._timing.renew_seconds / 2):
                    await self._give_back()

    async def _give_back(self) -> None:
        try:
            await self._client.replace(LEASES, election.released(self._held, self._stamp()))
        except Conflict:
            # A renewal was on its way when ``run`` was cancelled.
            lease = await self._client.get(LEASES, self._namespace, self._name)
            if self._is_mine(lease):
                await self._client.replace(LEASES, election.released(lease, self._stamp()))

    async def _acquire(self) -> None:
        while not self.acquired.is_set():
            wait = self._wait_seconds()
            if wait > 0:
                await self._change_within(wait)
            elif not await self._claims():
                await asyncio.sleep(self._rng() * self._timing.retry_seconds)

    def _wait_seconds(self) -> float:
        return 0.0 if self._seen is None else self._seen.free_at - self._clock()

    async def _change_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def _claims(self) -> bool:
        """Try to take the Lease; whether that needs no pause: it is ours, or is known to be another's."""
        try:
            async with asyncio.timeout(self._timing.renew_seconds / 2):
                self._see(await self._client.find(LEASES, self._namespace, self._name))
                if self._wait_seconds() <= 0:
                    await self._claim()
        except (KubeError, TimeoutError) as error:
            _LOG.info("the Lease %s/%s is not ours yet: %r", self._namespace, self._name, error)
            return False
        return True

    async def _claim(self) -> None:
        lease = self._seen.lease if self._seen is not None else None
        wanted = election.claimed(lease, self._namespace, self._name, self._identity, self._stamp(), self._timing)
        sent = self._clock()
        self._held = await (self._client.create if lease is None else self._client.replace)(LEASES, wanted)
        self.fence.begin(election.term(self._held), sent + self._timing.renew_seconds)
        self._note_written()
        self.acquired.set()
        _LOG.info("%s leads, term %d", self._identity, self.fence.term)

    async def _keep(self) -> NoReturn:
        while True:
            await asyncio.sleep(self._timing.retry_seconds)
            self.fence.check()
            await self._renew()

    async def _renew(self) -> None:
        """Try once; what fails is tried again until the fence ends it."""
        try:
            async with asyncio.timeout(min(self.fence.remaining_seconds, self._timing.renew_seconds / 2)):
                await self._prolong()
        except NotFound:
            _LOG.warning("the Lease %s/%s was deleted", self._namespace, self._name)
            self.fence.drop()
        except (KubeError, TimeoutError) as error:
            _LOG.warning("the Lease was not renewed, %.1f s are left: %r", self.fence.remaining_seconds, error)

    async def _prolong(self) -> None:
        sent = self._clock()
        try:
            lease = await self._client.replace(LEASES, election.renewed(self._held, self._stamp()))
        except Conflict:
            # Someone wrote to it, or our last renewal was stored and its answer lost.
            lease = await self._client.get(LEASES, self._namespace, self._name)
            if not self._is_mine(lease):
                self.fence.drop()
            self._held = lease
            return
        self._held = lease
        self.fence.extend(sent + self._timing.renew_seconds)
        self._note_written()

    def _is_mine(self, lease: Lease) -> bool:
        return election.holder(lease) == self._identity and election.term(lease) == self.fence.term

    def _see(self, lease: Lease | None) -> None:
        self._seen = election.see(self._seen, lease, self._identity, self._clock(), self._timing)

    def _hear(self, _key: Key, _old: Lease | None, new: Lease | None) -> None:
        self.echo, self._unechoed = self._clock(), None
        self._see(new)
        self._changed.set()

    def _note_written(self) -> None:
        if self._unechoed is None:
            self._unechoed = self._clock()

    def _stamp(self) -> str:
        return micro_time(self._wall())
