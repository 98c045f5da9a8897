import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import CONFIG_MAPS
from tests.kube_api import Answer, Api, Hangs, Object, Stream, served, status


def item(name: str, version: str, **data: str) -> Object:
    return {"metadata": {"namespace": "a", "name": name, "resourceVersion": version}, "data": data}


def listed(version: str, *items: Object) -> Answer:
    return Answer({"items": list(items), "metadata": {"resourceVersion": version}})


def event(type_: str, changed: Object) -> Object:
    return {"type": type_, "object": changed}


def bookmark(version: str) -> Object:
    return event("BOOKMARK", {"metadata": {"resourceVersion": version}})


EXPIRED = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}


class Heard:
    """The changes that a reflector told, until there are as many as wanted."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.changes: list[tuple[str, Any, Any]] = []
        self.enough = asyncio.Event()

    def __call__(self, key: tuple[str, str], old: Any, new: Any) -> None:
        self.changes.append((key[1], old, new))
        if len(self.changes) >= self.wanted:
            self.enough.set()


def follow(
    directory: Path, wanted: int, *answers: Answer | Stream | Hangs
) -> tuple[list[tuple[str, Any, Any]], Reflector[Any], Api]:
    """Follow ConfigMaps until so many changes were told; the data is all that is kept."""

    async def run() -> tuple[list[tuple[str, Any, Any]], Reflector[Any], Api]:
        heard = Heard(wanted)
        async with served(directory, *answers) as (client, api):
            reflector: Reflector[Any] = Reflector(
                client, CONFIG_MAPS, project=lambda found: found["data"] or None, on_change=heard, rng=lambda: 0.0
            )
            task = asyncio.create_task(reflector.run())
            await heard.enough.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return heard.changes, reflector, api

    return asyncio.run(run())


def test_a_list_and_its_watch_are_told_change_by_change(tmp_path: Path) -> None:
    changes, reflector, _ = follow(
        tmp_path,
        5,
        listed("5", item("x", "3", k="1"), item("empty", "3")),
        Stream(
            [
                event("MODIFIED", item("x", "6", k="1")),
                event("MODIFIED", item("x", "7", k="2")),
                event("ADDED", item("y", "8", k="1")),
                event("DELETED", item("x", "9", k="2")),
                event("MODIFIED", item("y", "10")),
            ],
            silent=True,
        ),
    )
    assert changes == [
        ("x", None, {"k": "1"}),
        ("x", {"k": "1"}, {"k": "2"}),
        ("y", None, {"k": "1"}),
        ("x", {"k": "2"}, None),
        ("y", {"k": "1"}, None),
    ]
    assert (dict(reflector.objects), reflector.synced.is_set(), reflector.failure) == ({}, True, None)


def test_a_watch_that_ended_goes_on_from_the_last_bookmark_without_a_list(tmp_path: Path) -> None:
    _, _, api = follow(
        tmp_path,
        1,
        listed("5"),
        Stream([bookmark("20")]),
        status(503),
        Stream([event("ADDED", item("x", "21", k="1"))], silent=True),
    )
    assert [each.query.get("resourceVersion") for each in api.asked] == [None, "5", "20", "20"]


def test_after_a_forgotten_version_the_difference_of_two_lists_is_told(tmp_path: Path) -> None:
    changes, _, _ = follow(
        tmp_path,
        5,
        listed("5", item("goes", "1", k="1"), item("stays", "2", k="1"), item("changes", "3", k="1")),
        Stream([EXPIRED]),
        listed("9", item("stays", "7", k="1"), item("changes", "8", k="2")),
        Stream(silent=True),
    )
    assert changes[3:] == [("goes", {"k": "1"}, None), ("changes", {"k": "1"}, {"k": "2"})]


def test_a_refused_list_is_tried_again_and_known_as_a_failure_meanwhile(tmp_path: Path) -> None:
    failures = []

    async def run() -> None:
        async with served(
            tmp_path, status(403, "Forbidden", "no right"), listed("5", item("x", "1", k="1")), Stream(silent=True)
        ) as (client, _):
            done = asyncio.Event()

            def told(*_: Any) -> None:
                failures.append(str(reflector.failure))
                done.set()

            reflector: Reflector[Any] = Reflector(client, CONFIG_MAPS, on_change=told, rng=lambda: 0.0)
            task = asyncio.create_task(reflector.run())
            await done.wait()
            await reflector.synced.wait()
            failures.append(str(reflector.failure))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert failures == ["list ConfigMap: no right", "None"]


def test_a_watch_that_falls_silent_is_replaced(tmp_path: Path) -> None:
    async def run() -> list[str | None]:
        heard = Heard(1)
        found = Stream([event("ADDED", item("x", "6", k="1"))], silent=True)
        async with served(tmp_path, listed("5"), Stream(silent=True), found) as (client, api):
            reflector: Reflector[Any] = Reflector(
                client, CONFIG_MAPS, on_change=heard, silence_seconds=0.05, rng=lambda: 0.0
            )
            task = asyncio.create_task(reflector.run())
            await heard.enough.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return [each.query.get("resourceVersion") for each in api.asked[:3]]

    assert asyncio.run(run()) == [None, "5", "5"]


class Pauses:
    """Randomness that notes how often a pause was drawn; the length of each watch is drawn too."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self) -> float:
        self.drawn += 1
        return 0.0


@pytest.mark.parametrize(("seconds_per_look", "pauses"), [(0.0, 2), (60.0, 0)], ids=["short", "long"])
def test_a_quiet_watch_that_lasted_is_followed_by_another_without_a_pause(
    seconds_per_look: float, pauses: int, tmp_path: Path
) -> None:
    async def run() -> int:
        heard, drawn, looks = Heard(1), Pauses(), count()
        found = Stream([event("ADDED", item("x", "6", k="1"))], silent=True)
        async with served(tmp_path, listed("5"), Stream(), Stream(), found) as (client, _):
            reflector: Reflector[Any] = Reflector(
                client, CONFIG_MAPS, on_change=heard, rng=drawn, clock=lambda: next(looks) * seconds_per_look
            )
            task = asyncio.create_task(reflector.run())
            await heard.enough.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return drawn.drawn

    watches = 3
    assert asyncio.run(run()) == watches + pauses
