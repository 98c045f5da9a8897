"""Steps of a change as the loop's tests read them off the API server; waits that last as long as something moves."""

import asyncio
from typing import Any

import pytest

from e2e.loop.patience import Patience, Stuck
from e2e.loop.steps import Kind, of_deployment, of_engine, of_fleet, of_table
from kvplan_operator.api.labels import DRAINING_ANNOTATION


def deployment(replicas: int) -> Any:
    return {"spec": {"replicas": replicas}}


def engine(*, ready: bool = True, **metadata: Any) -> Any:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": metadata, "status": {"conditions": conditions}}


def table(index: str) -> Any:
    return {"data": {"index.json": index}}


def following(digest: str) -> Any:
    return {"status": {"currentPlan": {"digest": digest}}}


DRAINING = engine(annotations={DRAINING_ANNOTATION: "1"})
GOING = engine(deletionTimestamp="1970-01-01T00:00:00Z")
TOLD: dict[str, tuple[Kind | None, Kind | None]] = {
    "a new Deployment": (of_deployment(None, deployment(1)), Kind.CREATE),
    "a smaller one": (of_deployment(deployment(2), deployment(1)), Kind.SHRINK),
    "a larger one": (of_deployment(deployment(0), deployment(1)), Kind.GROW),
    "one whose status changed": (of_deployment(deployment(1), deployment(1)), None),
    "one that is gone": (of_deployment(deployment(0), None), Kind.DELETE),
    "a new engine": (of_engine(None, engine(ready=False)), None),
    "one that is Ready": (of_engine(engine(ready=False), engine()), Kind.READY),
    "one that still is": (of_engine(engine(), engine()), None),
    "one that drains": (of_engine(engine(), DRAINING), Kind.DRAIN),
    "one that still drains": (of_engine(DRAINING, DRAINING), None),
    "one that was told to end": (of_engine(DRAINING, GOING), Kind.GOING),
    "an engine that is gone": (of_engine(GOING, None), Kind.GONE),
    "another index": (of_table(table("1"), table("2")), Kind.TABLE),
    "the same index": (of_table(table("1"), table("1")), None),
    "another plan in force": (of_fleet(following("a"), following("b")), Kind.FOLLOW),
    "another status": (of_fleet(following("a"), following("a")), None),
}


@pytest.mark.parametrize(("told", "kind"), TOLD.values(), ids=TOLD.keys())
def test_a_step_is_told_by(told: Kind | None, kind: Kind | None) -> None:
    assert told is kind


def test_a_wait_ends_with_the_event_that_it_waits_for() -> None:
    async def scenario() -> None:
        seen, patience = list[int](), Patience(30)
        waiting = asyncio.create_task(patience.until(lambda: len(seen) == 2, lambda: "two"))
        for _ in range(2):
            await asyncio.sleep(0)
            seen.append(1)
            patience.stir()
        await waiting

    asyncio.run(scenario())


def test_a_wait_without_a_step_fails_and_says_what_it_waited_for_whatever_else_happens() -> None:
    async def scenario() -> None:
        patience = Patience(0.05)

        async def noise() -> None:
            while True:
                patience.stir()
                await asyncio.sleep(0.001)

        making = asyncio.create_task(noise())
        with pytest.raises(Stuck, match=r"no step within 0 s, waiting for godot"):
            await patience.until(lambda: False, lambda: "godot")
        making.cancel()

    asyncio.run(scenario())


def test_every_step_gives_a_wait_all_its_time_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        now = [0.0]
        monkeypatch.setattr("e2e.loop.patience.time.monotonic", lambda: now[0])
        patience, steps = Patience(30), 3
        waiting = asyncio.create_task(patience.until(lambda: steps == 0, lambda: "three steps"))
        while steps:
            await asyncio.sleep(0)
            now[0], steps = now[0] + 29.0, steps - 1
            patience.step()
        await waiting

    asyncio.run(scenario())
