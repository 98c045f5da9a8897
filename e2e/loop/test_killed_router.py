"""What `kill -9` costs the clients: of a router's process, and of the Envoy beside it.

The first must cost nothing: Envoy goes on without a plan. The second breaks the answers that ran through that Envoy;
how many is told, not judged: no proxy that dies can end them well. After either, every request is answered again.
"""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.agent.preparation import ADDRESS_VARIABLE
from e2e.loop import looking
from e2e.loop.asking import End
from e2e.loop.repartition import Scene, scene
from e2e.loop.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

AFTERWARDS = 300
"""Requests that are sent once the container runs again."""


@dataclass(frozen=True)
class Loss:
    """What one kill cost.

    Attributes:
        open: requests under way at both gateways in that moment.
        lost: of these and later ones.
        seconds: until the pod was Ready again.
        after: lost once it was.
    """

    open: int
    lost: int
    seconds: float
    after: int


def test_a_killed_router_process_costs_no_request_and_a_killed_envoy_only_those_under_way(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    router, envoy = asyncio.run(two_kills(world))
    with capsys.disabled():
        print("", f"router killed: {router}", f"envoy killed: {envoy}", sep="\n")
    assert router.lost == 0
    assert (router.after, envoy.after) == (0, 0)


async def two_kills(world: World) -> tuple[Loss, Loss]:
    """Kill one process of the first router pod, then the other."""
    async with scene(world) as at:
        await at.load.reach(AFTERWARDS)
        return await kill(at, "router", "kvplan-router"), await kill(at, "envoy", "envoy")


async def kill(at: Scene, container: str, program: str) -> Loss:
    """Kill a container's process and see what becomes of the requests."""
    world, load = at.fleet.world, at.load
    pod = (await asyncio.to_thread(world.get, "pods", looking.ROUTERS))["items"][0]
    name, began, before, under_way = pod["metadata"]["name"], time.monotonic(), lost(at), len(load.open)
    os.kill(process_of(pod["status"]["podIP"], program), signal.SIGKILL)
    again = f'--for=jsonpath={{.status.containerStatuses[?(@.name=="{container}")].restartCount}}=1'
    await asyncio.to_thread(world.wait_for, f"pod/{name}", again)
    await asyncio.to_thread(world.wait_for, f"pod/{name}", "--for=condition=Ready")
    seconds, meanwhile = time.monotonic() - began, lost(at)
    await load.reach(load.tally.total + len(load.open) + AFTERWARDS)
    return Loss(under_way, meanwhile - before, seconds, lost(at) - meanwhile)


def lost(at: Scene) -> int:
    """Requests that did not end well."""
    return at.load.tally.total - at.load.tally.count(End.WHOLE)


def process_of(address: str, program: str) -> int:
    """Process id of a program in the pod that has an address."""
    variable = f"{ADDRESS_VARIABLE}={address}".encode()
    for found in Path("/proc").glob("[0-9]*"):
        try:
            environment, words = ((found / name).read_bytes().split(b"\0") for name in ("environ", "cmdline"))
        except OSError:  # it ended, or is another user's
            continue
        if variable in environment and program in (Path(word.decode()).name for word in words[:2]):
            return int(found.name)
    raise LookupError(f"no {program} runs in a pod at {address}")
