"""Fleets, classes and plans as our own watches have them: a deletion that fell into a gap is told too."""

import asyncio
from pathlib import Path

import pytest

from kvplan_operator.kube.reflector import Key
from kvplan_operator.reconcile.our_kinds import OurKinds
from kvplan_operator.reconcile.watches import Watches
from tests.kube_api import Answer, Object, Stream, served

EXPIRED = Stream([{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}])


def item(uid: str) -> Object:
    return {"metadata": {"namespace": "a", "name": "demo", "uid": uid, "resourceVersion": uid}}


def listed(version: str, *items: Object) -> Answer:
    return Answer({"items": list(items), "metadata": {"resourceVersion": version}})


class Told:
    """What was told, until there is as much as wanted."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.said, self.enough = wanted, list[tuple[str, Key, bool]](), asyncio.Event()

    def fleet_changed(self, key: Key, *, gone: bool) -> None:
        self._say("fleet", key, gone)

    def class_changed(self, key: Key, *, gone: bool) -> None:
        self._say("class", key, gone)

    def plan_changed(self, key: Key, _fleet: str | None, *, gone: bool) -> None:
        self._say("plan", key, gone)

    def _say(self, kind: str, key: Key, gone: bool) -> None:
        self.said.append((kind, key, gone))
        if len(self.said) >= self.wanted:
            self.enough.set()


AFTER_THE_GAP = {
    "an object that is gone": ((), [False, True]),
    "an object that was made again": ((item("2"),), [False, True, False]),
}


@pytest.mark.parametrize("kind", ["fleet", "class", "plan"])
@pytest.mark.parametrize(("there", "gone"), AFTER_THE_GAP.values(), ids=AFTER_THE_GAP.keys())
def test_after_a_gap_of_the_watch_is_told(
    kind: str, there: tuple[Object, ...], gone: list[bool], tmp_path: Path
) -> None:
    async def scenario() -> None:
        told = Told(len(gone))
        answers = (listed("1", item("1")), EXPIRED, listed("9", *there), Stream(silent=True))
        async with served(tmp_path, *answers) as (client, _):
            ours, watches = OurKinds(client, (), told), Watches()
            await watches.start([ours.reflectors[["fleet", "class", "plan"].index(kind)]])
            await told.enough.wait()
            found = {"fleet": ours.objects.fleets, "class": ours.objects.classes, "plan": ours.objects.plans}[kind]()
            await watches.stop()
        assert told.said == [(kind, ("a", "demo"), value) for value in gone]
        assert [one["metadata"] for one in found.values()] == [one["metadata"] for one in there]
        assert not watches.broken

    asyncio.run(scenario())
