import asyncio
import re
from pathlib import Path
from typing import Any

from kvplan_operator.kube.client import Client
from kvplan_operator.kube.recorder import Happening, Recorder
from tests.kube_api import Answer, Object, served, status

FLEET = {
    "apiVersion": "kvplan.dev/v1alpha1",
    "kind": "ServingFleet",
    "metadata": {"namespace": "a", "name": "chat", "uid": "u-1"},
    "spec": {},
}


def record(directory: Path, moments: list[float], *answers: Answer) -> tuple[list[tuple[str, Any]], Recorder]:
    """Record one transition at each of these times; what was written, by method and series."""

    async def run() -> tuple[list[tuple[str, Any]], Recorder]:
        async with served(directory, *answers) as (client, api):
            now = [0.0]
            recorder = Recorder(client, "operator-0", clock=lambda: now[0])
            task = asyncio.create_task(recorder.run())
            for now[0] in moments:
                recorder.record(FLEET, "Contended", "Apply", "another writer", warning=True)
                await recorder.flushed()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return [(each.method, each.body.get("series", {}).get("count")) for each in api.asked], recorder

    return asyncio.run(run())


def test_the_first_of_its_kind_is_an_event_and_repetitions_are_its_series_now_and_then(tmp_path: Path) -> None:
    written, recorder = record(tmp_path, [0.0, 1.0, 2.0, 40.0], Answer())
    assert written == [("POST", None), ("PATCH", 2), ("PATCH", 4)]
    assert recorder.dropped == 0


def test_a_series_whose_event_has_ended_begins_anew(tmp_path: Path) -> None:
    written, _ = record(tmp_path, [0.0, 1.0], Answer(), status(404, "NotFound"), Answer())
    assert written == [("POST", None), ("PATCH", 2), ("POST", None)]


def test_a_refused_event_is_dropped_and_stops_nothing(tmp_path: Path) -> None:
    written, recorder = record(tmp_path, [0.0, 1.0], status(403, "Forbidden"), Answer())
    assert (written, recorder.dropped) == ([("POST", None), ("POST", None)], 1)


def test_an_event_names_its_object_and_stays_within_the_limits_of_the_api(tmp_path: Path) -> None:
    async def run() -> Object:
        async with served(tmp_path, Answer()) as (client, api):
            recorder = Recorder(client, "i" * 300)
            task = asyncio.create_task(recorder.run())
            recorder.record(FLEET, "Planned", "Plan", "n" * 5000)
            await recorder.flushed()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            body: Object = api.asked[0].body
            return body

    event_ = asyncio.run(run())
    assert event_["regarding"] == {
        "apiVersion": "kvplan.dev/v1alpha1",
        "kind": "ServingFleet",
        "namespace": "a",
        "name": "chat",
        "uid": "u-1",
    }
    assert (event_["metadata"]["namespace"], event_["type"], len(event_["note"]), len(event_["reportingInstance"])) == (
        "a",
        "Normal",
        1024,
        128,
    )


def test_the_name_of_an_event_about_a_long_name_is_still_a_name() -> None:
    happening = Happening((("name", "a" * 199 + "-" + "b" * 50),), "Planned", "Plan", "planned", warning=False)
    assert re.fullmatch("a{199}[.][0-9a-f]{16}", happening.name("operator-0"))


def test_more_happenings_than_can_wait_are_counted_as_dropped() -> None:
    recorder = Recorder(Client(None), "operator-0")  # type: ignore[arg-type] # nothing is written without ``run``
    for number in range(1003):
        recorder.record(FLEET, "Planned", "Plan", f"plan {number}")
    assert recorder.dropped == 3
