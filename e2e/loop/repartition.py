"""A full fleet that goes from one partition to another under load, and what must be true when it is through.

Inputs: a world. Outputs: two plans that use every GPU, changes between them with their figures, and ``faults``. The
clients alone say whether a request was lost; GPUs and reservations are added up by a ``Watcher``.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from e2e.loop import looking, manifests
from e2e.loop.asking import Ended
from e2e.loop.crashes import crashing
from e2e.loop.fleet import Fleet, Step, following
from e2e.loop.gateways import following as following_gateways
from e2e.loop.load import Load, Mix
from e2e.loop.shapes import Shape
from e2e.loop.steps import BY_OPERATOR, Kind
from e2e.loop.watching import Watcher, watching
from e2e.loop.world import NAMESPACE, PLACE, World
from kvplan_operator.kube.client import Client

MODEL = "Qwen/Qwen3-32B"
MANY_CHATS = {"chat": 14.0, "code": 1.0, "summarise": 2.5}
LITTLE_OF_ALL = {"chat": 6.0, "code": 4.0, "summarise": 1.0}
"""Stated rates that want many small groups, and few large ones."""
SHAPES = {
    "chat": Shape("chat", [(200, 20), (400, 40)], keys=20, shared_tokens=128),
    "code": Shape("code", [(300, 8), (500, 16)]),
    "summarise": Shape("summarise", [(600, 40), (900, 60)]),
}
ARRIVING: Mix = {"chat": 14.0, "code": 9.0, "summarise": 3.0}
"""Requests that do arrive, per second: one router alone, with its part of every budget, admits them in time."""
EVERY_KIND = BY_OPERATOR - {Kind.GROW}
"""Kinds of step that every change of partition has; a set grows only where two groups share a node."""
GPUS = 24
FLOOR_MILLI = 500
"""`rollout.minAvailableMilli` of the sample."""


@dataclass(frozen=True)
class Change:
    """How a change went.

    Attributes:
        seconds: from the digest accepted to the plan in force.
        requests: that ended meanwhile.
        crashed_after: kinds of step after which the operator was killed.
        ended_by_itself: how often it ended without being killed.
        steps: how many of each kind were seen.
        waits: seconds that passed before steps of each kind, since the step before.
    """

    seconds: float
    requests: int
    crashed_after: tuple[Kind, ...]
    ended_by_itself: int
    steps: Counter[Kind]
    waits: Mapping[Kind, float]


@dataclass
class Scene:
    """A fleet with two plans, the first in force.

    Attributes:
        fleet: followed.
        load: requests that arrive all the time.
        watcher: of what must hold.
        few: digest of the plan of few large groups.
        many: of many small ones.
    """

    fleet: Fleet
    load: Load
    watcher: Watcher
    few: str
    many: str

    async def change(self, digest: str, kinds: Collection[Kind]) -> Change:
        """Go to a plan; the operator is killed once after each of these kinds of step."""
        began, seen, ended = time.monotonic(), len(self.fleet.steps), self.load.tally.total
        async with crashing(self.fleet, kinds) as crashes:
            await self.fleet.accept(digest)
        seconds, requests, steps = time.monotonic() - began, self.load.tally.total - ended, self.fleet.steps[seen:]
        kinds_seen = Counter(step.kind for step in steps)
        return Change(seconds, requests, tuple(crashes.after), crashes.own, kinds_seen, waits(began, steps))

    async def configurations(self) -> dict[str, int]:
        """Groups of the plan in force."""
        plan = await asyncio.to_thread(looking.in_force, self.fleet.world)
        return {group["configuration"]: len(group["placements"]) for group in plan["spec"]["groups"]}

    async def replace_a_router(self) -> None:
        """Delete one of the router pods and wait until its successor is Ready."""
        world = self.fleet.world
        pods = await asyncio.to_thread(world.get, "pods", looking.ROUTERS)
        delete = ("delete", "pod", pods["items"][0]["metadata"]["name"], PLACE, "--wait=true", "--timeout=120s")
        await asyncio.to_thread(world.cluster.kubectl, *delete)
        both = "--for=jsonpath={.status.readyReplicas}=2"
        await asyncio.to_thread(world.wait_for, "deployment/kvplan-router", both, 90)


@asynccontextmanager
async def scene(world: World) -> AsyncIterator[Scene]:
    """Everything at work: two plans, requests, eyes on what must hold."""
    client = await Client.connect(world.cluster.kubeconfig)
    try:
        async with following(world, client) as fleet, following_gateways(client, NAMESPACE) as gateways:
            few, many = await two_plans(fleet)
            async with watching(client) as watcher, Load(gateways.next, SHAPES, ARRIVING, MODEL) as load:
                yield Scene(fleet, load, watcher, few, many)
    finally:
        await client.close()


async def two_plans(fleet: Fleet) -> tuple[str, str]:
    """Digests of two plans that use every GPU: few large groups, in force, and many small ones.

    The second is found for traffic that the first could not serve; then the traffic is stated as before, so that both
    hold and nothing but the accepted digest decides.
    """
    apply = fleet.world.apply
    await asyncio.to_thread(apply, *approved(), *classes(LITTLE_OF_ALL))
    few = await fleet.proposal()
    await fleet.accept(few)
    await asyncio.to_thread(apply, *classes(MANY_CHATS))
    many = await fleet.proposal(other_than=few)
    await asyncio.to_thread(apply, *classes(LITTLE_OF_ALL))
    return few, many


def classes(rates: Mix) -> list[Any]:
    """The sample's classes with stated rates and so much patience that a busy machine makes nobody's request late."""
    documents = manifests.sample("classes")
    for document in documents:
        document["spec"]["arrivals"] = {"requestsPerSecondMilli": round(1000 * rates[document["metadata"]["name"]])}
        document["spec"]["queue"] = {"maxLength": 1000, "deadlineMilliseconds": 20_000}
    return documents


def approved() -> list[Any]:
    """The sample's fleet, changed by accepted digests alone."""
    documents = manifests.sample("fleet")
    documents[0]["spec"]["planPolicy"] = {"mode": "Approve"}
    return documents


def waits(began: float, steps: Sequence[Step]) -> Mapping[Kind, float]:
    """Seconds that passed before steps of each kind; together they are the time until the last step."""
    passed = dict.fromkeys((step.kind for step in steps), 0.0)
    for before, step in zip([began, *(step.at for step in steps)], steps, strict=False):
        passed[step.kind] += step.at - before
    return passed


@dataclass(frozen=True)
class Outcome:
    """What came of everybody.

    Attributes:
        figures: what the run says of itself, a line each.
        faults: what did not hold, in words.
    """

    figures: list[str]
    faults: list[str]


def outcome(at: Scene, changes: Sequence[Change]) -> Outcome:
    """What came of a scene that is over."""
    return Outcome(figures(at.load, at.watcher, changes), faults(at.load, at.watcher))


def faults(load: Load, watcher: Watcher) -> list[str]:
    """What did not hold, in words: requests that were lost, anything that was promised twice, a floor that broke."""
    fewest, reservations = watcher.fewest_gpus or 0, watcher.reservations
    broken = [f"only {fewest} GPUs were ready"] if fewest * 1000 < GPUS * FLOOR_MILLI else []
    looked = {"pods": watcher.events, "routers": reservations.looks}
    unseen = [f"nobody looked at {what}" for what, times in looked.items() if not times]
    began = min((one.began for one in load.tally.ended), default=0.0)
    lost = [_lost(one, one.began - began) for one in load.tally.bad]
    return [*lost, *watcher.overdrawn, *reservations.over_budget, *broken, *unseen]


def _lost(one: Ended, at: float) -> str:
    what = "stream" if one.asked.stream else "request"
    return f"{one.asked.request_class} {what} of second {at:.0f} {one.end} after {one.seconds:.1f} s: {one.detail}"


def figures(load: Load, watcher: Watcher, changes: Sequence[Change]) -> list[str]:
    """What the run says of itself, a line each."""
    ended, reservations = load.tally.ended, watcher.reservations
    streams, longest = sum(one.asked.stream for one in ended), max(one.seconds for one in ended)
    return [
        f"{len(ended)} requests, {streams} of them streams, {len(load.tally.bad)} lost",
        f"the longest took {longest:.1f} s; {reservations.unplanned.total()} were answered without a plan",
        *(_figures(change) for change in changes),
        f"fewest ready GPUs {watcher.fewest_gpus} of {GPUS}; over a budget {len(reservations.over_budget)} times",
    ]


def _figures(change: Change) -> str:
    steps = ", ".join(f"{number} {kind} ({change.waits[kind]:.1f} s)" for kind, number in change.steps.items())
    killed = ", ".join(change.crashed_after) or "nothing"
    went = f"a change of {change.seconds:.0f} s with {change.requests} requests: {steps}"
    return f"{went}; operator killed after {killed}, ended by itself {change.ended_by_itself} times"
