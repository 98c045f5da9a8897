"""The pod's preStop hook against a real Envoy: it ends when every answer has ended, or when its time is over."""

import asyncio
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness.commands import HOST
from e2e.harness.ports import PortLease
from e2e.router.bed import Bed
from e2e.router.client import Client, eventually
from kvplan_router.envoy.drain import ACTIVE

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm", "serving_again")]


@pytest.fixture
def serving_again(bed: Bed) -> Iterator[None]:
    """Envoy takes clients again after the test."""
    yield
    undo = urllib.request.Request(f"http://{HOST}:{bed.envoy_admin}/healthcheck/ok", method="POST")
    with urllib.request.urlopen(undo, timeout=5):  # noqa: S310 - loopback
        pass


async def drain(admin: int, done: Path, limit_seconds: float) -> int:
    """Run the hook; returns its exit status."""
    options = [f"--admin={HOST}:{admin}", "--lame-duck-seconds=0.2", f"--limit-seconds={limit_seconds}"]
    command = [sys.executable, "-m", "kvplan_router.envoy.drain", *options, f"--done-file={done}"]
    process = await asyncio.create_subprocess_exec(*command)
    return await process.wait()


async def test_the_drain_ends_when_every_open_answer_has(bed: Bed, tmp_path: Path) -> None:
    async with Client(bed) as client:
        streams = [asyncio.create_task(client.stream(60, 0.05)) for _ in range(5)]
        await eventually(bed, lambda: bed.envoy_counter(ACTIVE) == len(streams), "every stream open")
        assert await drain(bed.envoy_admin, tmp_path / "drained", 60) == 0
        assert (tmp_path / "drained").exists()
        assert bed.envoy_counter(ACTIVE) == 0
        assert [(await stream).status for stream in streams] == [200] * len(streams)


async def test_clients_are_turned_away_and_still_answered_while_it_drains(bed: Bed, tmp_path: Path) -> None:
    async with Client(bed) as client:
        stream = asyncio.create_task(client.stream(60, 0.05))
        await eventually(bed, lambda: bed.envoy_counter(ACTIVE) == 1, "the stream open")
        draining = asyncio.create_task(drain(bed.envoy_admin, tmp_path / "drained", 60))
        answer = await client.ask()
        while not draining.done() and answer.headers.get("connection") != "close":
            answer = await client.ask()
        assert (answer.status, answer.headers.get("connection")) == (200, "close")
        assert await draining == 0
        assert (await stream).status == 200


async def test_answers_that_do_not_end_are_given_up_when_the_time_is_over(bed: Bed, tmp_path: Path) -> None:
    async with Client(bed) as client:
        endless = asyncio.create_task(client.stream(100_000, 0.05))
        await eventually(bed, lambda: bed.envoy_counter(ACTIVE) == 1, "the stream open")
        assert await drain(bed.envoy_admin, tmp_path / "drained", 0.5) == 1
        assert (tmp_path / "drained").exists()
        assert not endless.done()
        endless.cancel()
        await asyncio.wait([endless])


async def test_an_envoy_that_has_ended_has_nothing_to_wait_for(tmp_path: Path) -> None:
    ports = PortLease()
    assert await drain(ports.take(), tmp_path / "drained", 60) == 0
    assert (tmp_path / "drained").exists()
    ports.release()
