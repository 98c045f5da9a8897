"""The generation counts changes of the spec and of nothing else, and a write that changes nothing is none."""

import pytest

from e2e.contract.client import MERGE, Client
from e2e.contract.objects import fleet, fleets

pytestmark = pytest.mark.e2e


async def test_only_a_change_of_the_spec_counts(client: Client, place: str, name: str) -> None:
    path = f"{fleets(place)}/{name}"
    generations = [(await client.create(fleets(place), fleet(name))).body["metadata"]["generation"]]
    for subresource, change in (
        ("", {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}),
        ("/status", {"status": {"observedGeneration": 1}}),
        ("", {"spec": {"suspend": False}}),
        ("", {"spec": {"suspend": True}}),
        ("", {"status": {"observedGeneration": 9}}),
    ):
        written = (await client.patch(path + subresource, change, MERGE)).body
        generations.append(written["metadata"]["generation"])
    assert generations == [1, 1, 1, 1, 2, 2]
    assert written["status"]["observedGeneration"] == 1


async def test_a_write_that_changes_nothing_leaves_the_version(client: Client, place: str, name: str) -> None:
    """But for the first one after the creation, which stores the default status."""
    path = f"{fleets(place)}/{name}"
    made = (await client.create(fleets(place), fleet(name))).body
    first = (await client.replace(path, made)).body
    again = [
        await client.replace(path, first),
        await client.patch(path, {"spec": {"suspend": False}}, MERGE),
        await client.patch(f"{path}/status", {"status": {"observedGeneration": -1}}, MERGE),
    ]
    assert [reply.body for reply in again] == [first] * 3
    first["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    assert first == made


async def test_a_dry_run_answers_and_writes_nothing(client: Client, place: str, name: str) -> None:
    tried = await client.create(fleets(place), fleet(name), dryRun="All")
    assert (tried.code, tried.body["spec"]["suspend"]) == (201, False)
    assert (await client.get(f"{fleets(place)}/{name}")).code == 404
