"""Several processes want one Lease, on clocks of different rates, over a network that delays and loses, and while some
are stopped as by SIGSTOP: at no time may two write.

The processes are real ``Leadership`` objects. Each has an event loop whose time the test sets; a stopped process is a
loop that is not stepped, and whose clock has gone on when it is. One that ended is replaced, as a Deployment does.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.kube.answers import Event, Listing
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import AlreadyExists, Conflict, LeadershipLost, NotFound, Unavailable
from kvplan_operator.kube.lease import Leadership

Object = dict[str, Any]

STEP_SECONDS = 0.5
HORIZON_SECONDS = 120.0
QUIET_SECONDS = 60.0
"""At the end nothing fails and nobody is stopped, so that somebody must lead."""
TIMING = (15.0, 14.0, 2.0)
"""Duration, renew, retry: a margin just above what the clocks' rates make of it, so that nothing else hides in it."""
MOST_DRIFT = 0.02
HOPS = 12
"""Turns of a loop per step: more than any of its awaits is deep."""


class Loop(asyncio.SelectorEventLoop):
    """An event loop that believes what time it is told."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__()

    def time(self) -> float:
        return self.now

    def step(self, now: float) -> None:
        """Run what is due by then."""
        self.now = now
        for _ in range(HOPS):
            self.stop()
            self.run_forever()


class Server:
    """The Lease at the API server."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.watches: list[asyncio.Queue[Event]] = []

    def create(self, document: Mapping[str, Any]) -> Object:
        if self.lease is not None:
            raise AlreadyExists("taken")
        return self._store(document, "ADDED")

    def replace(self, document: Mapping[str, Any]) -> Object:
        if self.lease is None:
            raise NotFound("no Lease")
        if document["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("another was faster")
        return self._store(document, "MODIFIED")

    def read(self) -> Object | None:
        return self.lease

    def delete(self) -> None:
        """As a person might."""
        if self.lease is not None:
            self._tell("DELETED", self.lease)
            self.lease = None

    def _store(self, document: Mapping[str, Any], type_: str) -> Object:
        self.version += 1
        metadata = document["metadata"] | {"resourceVersion": str(self.version)}
        self.lease = {**document, "metadata": metadata}
        self._tell(type_, self.lease)
        return self.lease

    def _tell(self, type_: str, lease: Object) -> None:
        for watch in self.watches:
            watch.put_nowait(Event(type_, lease))


class Line:
    """A client of the server, as far as ``Leadership`` uses one, over a bad line."""

    def __init__(self, server: Server, rng: random.Random, loss: float, most_delay_seconds: float) -> None:
        self.server, self.rng, self.loss, self.most_delay_seconds = server, rng, loss, most_delay_seconds

    async def _carry(self, act: Any, *arguments: Any) -> Any:
        await self._travel()
        answer = act(*arguments)
        await self._travel()
        return answer

    async def _travel(self) -> None:
        await asyncio.sleep(self.rng.random() * self.most_delay_seconds)
        if self.rng.random() < self.loss:
            raise Unavailable("lost")

    async def find(self, *_: Any) -> Object | None:
        return cast(Object | None, await self._carry(self.server.read))

    async def get(self, *_: Any) -> Object:
        found = await self._carry(self.server.read)
        if found is None:
            raise NotFound("no Lease")
        return cast(Object, found)

    async def create(self, _resource: Any, document: Mapping[str, Any]) -> Object:
        return cast(Object, await self._carry(self.server.create, document))

    async def replace(self, _resource: Any, document: Mapping[str, Any]) -> Object:
        return cast(Object, await self._carry(self.server.replace, document))

    async def list(self, *_: Any, project: Any, **_options: Any) -> Listing:
        lease = await self._carry(self.server.read)
        return Listing(() if lease is None else (project(lease),), str(self.server.version))

    @asynccontextmanager
    async def watch(self, *_: Any, resource_version: str, **_options: Any) -> AsyncIterator[AsyncIterator[Event]]:
        queue: asyncio.Queue[Event] = asyncio.Queue()
        if self.server.lease is not None and self.server.version > int(resource_version):
            queue.put_nowait(Event("MODIFIED", self.server.lease))
        self.server.watches.append(queue)

        async def told() -> AsyncIterator[Event]:
            while True:
                event = await queue.get()
                await self._travel()
                yield event

        try:
            yield told()
        finally:
            self.server.watches.remove(queue)


@dataclass(frozen=True)
class Stop:
    """Somebody is stopped."""

    who: int
    begin: float
    seconds: float


@dataclass(frozen=True)
class Adversity:
    """What befalls the processes.

    Attributes:
        seed: of delays, losses and pauses.
        rates: of the processes' clocks.
        loss: probability that a message is lost.
        most_delay_seconds: of a message.
        stops: who is stopped, and when.
        deletion: when a person deletes the Lease.
    """

    seed: int = 1
    rates: tuple[float, ...] = (1.0, 1.0, 1.0)
    loss: float = 0.0
    most_delay_seconds: float = 0.5
    stops: tuple[Stop, ...] = ()
    deletion: float | None = None

    def stopped(self, who: int, now: float) -> bool:
        """Whether a process is stopped."""
        return any(stop.who == who and stop.begin <= now < stop.begin + stop.seconds for stop in self.stops)


class Process:
    """One process that wants to lead."""

    def __init__(self, server: Server, name: str, rate: float, adversity: Adversity) -> None:
        rng = random.Random(f"{adversity.seed} {name}")
        self.loop, self.rate, self.now = Loop(), rate, 0.0
        self.line = Line(server, rng, adversity.loss, adversity.most_delay_seconds)
        self.leadership = self._leadership(name, rng)
        self.task = self.loop.create_task(self.leadership.run())

    def _leadership(self, name: str, rng: random.Random) -> Leadership:
        def any_time() -> datetime:
            return datetime.fromtimestamp(rng.uniform(0, 2e9), UTC)

        client = cast(Client, self.line)
        return Leadership(client, "a", "leader", name, *TIMING, clock=lambda: self.now, wall=any_time, rng=rng.random)

    @property
    def leads(self) -> bool:
        return self.leadership.fence.holds

    def pass_time(self, now: float, stopped: bool) -> None:
        """Its clock goes on in any case, its code only if it is not stopped."""
        self.now = now * self.rate
        if not stopped:
            self.loop.step(self.now)

    def end(self) -> None:
        self.task.cancel()
        while not self.task.done():
            self.loop.step(self.now)
        if not self.task.cancelled():
            assert isinstance(self.task.exception(), LeadershipLost)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


class World:
    """All processes, step by step."""

    def __init__(self, adversity: Adversity) -> None:
        self.adversity, self.server = adversity, Server()
        self.started = 0
        self.processes = [self._start(who) for who in range(len(adversity.rates))]
        self.most_leaders = 0
        self.terms: list[int] = []

    @property
    def leaders(self) -> list[Process]:
        return [process for process in self.processes if process.leads]

    def run(self) -> None:
        deletion = self.adversity.deletion
        for number in range(round((HORIZON_SECONDS + QUIET_SECONDS) / STEP_SECONDS)):
            now = number * STEP_SECONDS
            if deletion is not None and now >= deletion:
                self.server.delete()
                deletion = None
            for who in range(len(self.processes)):
                self._step(who, now)
                self._look()
        for process in self.processes:
            process.end()

    def _start(self, who: int) -> Process:
        self.started += 1
        return Process(self.server, f"process-{self.started}", self.adversity.rates[who], self.adversity)

    def _step(self, who: int, now: float) -> None:
        process = self.processes[who]
        if now >= HORIZON_SECONDS:
            process.line.loss, process.line.most_delay_seconds = 0.0, 0.1
        process.pass_time(now, self.adversity.stopped(who, now))
        if process.task.done():
            process.end()
            self.processes[who] = self._start(who)

    def _look(self) -> None:
        terms = [process.leadership.fence.term for process in self.leaders]
        self.most_leaders = max(self.most_leaders, len(terms))
        self.terms += [term for term in terms if term not in self.terms]


def lived(adversity: Adversity) -> World:
    """The world after all that befell it."""
    world = World(adversity)
    world.run()
    return world


ADVERSITIES = st.builds(
    Adversity,
    seed=st.integers(0, 2**32),
    rates=st.tuples(*[st.floats(1 - MOST_DRIFT, 1 + MOST_DRIFT)] * 3),
    loss=st.floats(0.0, 0.25),
    most_delay_seconds=st.floats(0.1, 3.0),
    stops=st.lists(st.builds(Stop, who=st.integers(0, 2), begin=st.floats(5, 80), seconds=st.floats(5, 30))).map(tuple),
    deletion=st.none() | st.floats(20, 90),
)


@settings(max_examples=25, deadline=None)
@given(ADVERSITIES)
def test_never_do_two_lead_and_somebody_leads_in_the_end(adversity: Adversity) -> None:
    world = lived(adversity)
    assert (world.most_leaders, len(world.leaders)) == (1, 1)


def test_over_a_good_line_the_first_leads_all_the_time_and_hears_itself() -> None:
    world = lived(Adversity())
    assert (world.most_leaders, world.terms) == (1, [1])
    assert world.leaders[0].leadership.echo_lag_seconds < 5.0


def test_a_leader_that_is_stopped_for_long_is_followed_by_another() -> None:
    stop = Stop(who=0, begin=20.0, seconds=50.0)
    world = lived(Adversity(rates=(1.0, 1.0), stops=(stop,)))
    assert (world.most_leaders, world.terms, world.started) == (1, [1, 2], 3)


def test_a_leader_whose_watch_is_dead_finds_its_echo_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "_tell", lambda *_: None)
    world = lived(Adversity(rates=(1.0,)))
    assert world.leaders[0].leadership.echo_lag_seconds > HORIZON_SECONDS
