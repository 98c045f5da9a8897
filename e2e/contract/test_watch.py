"""Watches: what is told, in which order, and from where one goes on."""

import base64
import os

import pytest

from e2e.contract.client import MERGE, Client
from e2e.contract.objects import config_map, config_maps, fleet, fleets

pytestmark = pytest.mark.e2e

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
LARGEST_CONFIG_MAP = 1024 * 1024


@pytest.mark.smoke
async def test_a_watch_from_a_list_tells_every_later_change_in_order(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(f"{name}-old"))
    listed = (await client.get(fleets(place))).body
    async with client.watch(fleets(place), resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        await client.create(fleets(place), fleet(name))
        await client.patch(f"{fleets(place)}/{name}", {"spec": {"suspend": True}}, MERGE)
        await client.delete(f"{fleets(place)}/{name}")
        events = [await watch.next() for _ in range(3)]
    assert [(event.type, event.name) for event in events if event] == [
        ("ADDED", name),
        ("MODIFIED", name),
        ("DELETED", name),
    ]
    versions = [event.version for event in events if event]
    assert int(listed["metadata"]["resourceVersion"]) < versions[0] < versions[1] < versions[2]


async def test_a_watch_from_nowhere_begins_with_what_is_there(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    async with client.watch(fleets(place)) as watch:
        assert (await watch.until("ADDED", name)).object["spec"]["model"] == {"name": "m"}


async def test_a_streamed_list_ends_with_a_bookmark(client: Client, place: str, name: str) -> None:
    await client.create(fleets(place), fleet(name))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with client.watch(fleets(place), **query) as watch:
        event = await watch.until("ADDED", name)
        while event.type == "ADDED":
            event = await watch.next() or pytest.fail("the watch ended")
    assert (event.type, event.object["kind"]) == ("BOOKMARK", "ServingFleet")
    assert event.object["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
    assert event.version > 0


async def test_the_server_ends_a_watch_in_time(client: Client, place: str, name: str) -> None:
    version = (await client.create(fleets(place), fleet(name))).body["metadata"]["resourceVersion"]
    async with client.watch(fleets(place), resourceVersion=version, timeoutSeconds="1") as watch:
        assert (watch.code, await watch.next()) == (200, None)


async def test_two_seconds_before_its_end_a_watch_is_told_where_to_go_on(client: Client, place: str, name: str) -> None:
    own = {"labelSelector": f"pool={name}"}
    mine = fleet(name)
    mine["metadata"]["labels"] = {"pool": name}
    version = (await client.create(fleets(place), mine)).body["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "timeoutSeconds": "8", "allowWatchBookmarks": "true", **own}
    async with client.watch(fleets(place), **query) as watch:
        passed_by = (await client.create(fleets(place), fleet(f"{name}-other"))).body["metadata"]["resourceVersion"]
        bookmark = await watch.next() or pytest.fail("the watch ended without a bookmark")
    assert (bookmark.type, set(bookmark.object["metadata"]) & {"name", "uid"}) == ("BOOKMARK", set())
    assert bookmark.version >= int(passed_by)
    async with client.watch(fleets(place), resourceVersion=str(bookmark.version), **own) as watch:
        await client.delete(f"{fleets(place)}/{name}")
        event = await watch.next() or pytest.fail("the watch ended")
    assert (event.type, event.name) == ("DELETED", name)


async def test_an_object_that_leaves_a_selector_is_told_as_deleted(client: Client, place: str, name: str) -> None:
    labelled = fleet(name)
    labelled["metadata"]["labels"] = {"pool": name}
    version = (await client.create(fleets(place), labelled)).body["metadata"]["resourceVersion"]
    async with client.watch(fleets(place), resourceVersion=version, labelSelector=f"pool={name}") as watch:
        await client.patch(f"{fleets(place)}/{name}", {"metadata": {"labels": {"pool": "other"}}}, MERGE)
        event = await watch.next()
    assert event is not None
    assert (event.type, event.object["metadata"]["labels"]) == ("DELETED", {"pool": name})
    assert event.version > int(version)


async def test_a_watch_carries_the_largest_config_map_there_may_be(client: Client, place: str, name: str) -> None:
    shard = config_map(name) | {"binaryData": {"table": base64.b64encode(os.urandom(LARGEST_CONFIG_MAP)).decode()}}
    listed = (await client.get(config_maps(place))).body["metadata"]["resourceVersion"]
    async with client.watch(config_maps(place), resourceVersion=listed, fieldSelector=f"metadata.name={name}") as watch:
        assert (await client.create(config_maps(place), shard)).code == 201
        assert (await watch.until("ADDED", name)).object["binaryData"] == shard["binaryData"]
    shard["binaryData"]["table"] = base64.b64encode(os.urandom(LARGEST_CONFIG_MAP + 1)).decode()
    refused = await client.create(config_maps(place), shard)
    assert (refused.code, refused.causes[0]["message"]) == (422, "Too long: may not be more than 1048576 bytes")


async def test_pages_of_a_list_are_one_snapshot(client: Client, place: str, name: str) -> None:
    path, chosen = config_maps(place), {"labelSelector": f"page={name}"}
    for number in range(3):
        page = config_map(f"{name}-{number}")
        page["metadata"]["labels"] = {"page": name}
        await client.create(path, page)
    first = (await client.get(path, limit="2", **chosen)).body
    await client.delete(f"{path}/{name}-2")
    second = (await client.get(path, limit="2", **chosen, **{"continue": first["metadata"]["continue"]})).body
    assert [item["metadata"]["name"] for item in second["items"]] == [f"{name}-2"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
