"""Old resource versions: what a client is told whose version etcd no longer has."""

import aiohttp
import pytest

from e2e.contract.client import MERGE, Client
from e2e.contract.objects import config_map, config_maps
from e2e.harness.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]


def etcd_of(cluster: Cluster) -> str:
    """The address at which etcd serves its clients."""
    (address,) = (flag for flag in cluster.plane.etcd.command.argv if flag.startswith("--listen-client-urls="))
    return address.partition("=")[2]


async def compact(cluster: Cluster, revision: str) -> None:
    """Make etcd forget everything before a revision."""
    async with aiohttp.ClientSession() as session:
        body = {"revision": revision, "physical": True}
        async with session.post(f"{etcd_of(cluster)}/v3/kv/compaction", json=body) as answer:
            assert answer.status == 200, await answer.text()


def events(place: str) -> str:
    """The one kind that the API server reads straight from etcd, with no cache that remembers longer."""
    return f"/api/v1/namespaces/{place}/events"


async def make_events(client: Client, place: str, *names: str) -> list[str]:
    """Create events and return their versions."""
    versions = []
    for name in names:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"namespace": place},
        }
        versions.append((await client.create(events(place), event)).body["metadata"]["resourceVersion"])
    return versions


async def test_a_watch_from_before_a_compaction_is_told_that_it_expired(
    client: Client, cluster: Cluster, place: str, name: str
) -> None:
    old, _, new = await make_events(client, place, f"{name}-1", f"{name}-2", f"{name}-3")
    await compact(cluster, new)
    async with client.watch(events(place), resourceVersion=old) as watch:
        event = await watch.next()
        assert event is not None
        assert (watch.code, event.type, await watch.next()) == (200, "ERROR", None)
    assert (event.object["code"], event.object["reason"]) == (410, "Expired")


async def test_a_page_from_before_a_compaction_is_told_where_to_go_on(
    client: Client, cluster: Cluster, place: str, name: str
) -> None:
    await make_events(client, place, f"{name}-1", f"{name}-2")
    page = (await client.get(events(place), limit="1")).body
    (newest,) = await make_events(client, place, f"{name}-3")
    await compact(cluster, newest)
    expired = await client.get(events(place), **{"limit": "1", "continue": page["metadata"]["continue"]})
    assert (expired.code, expired.reason) == (410, "Expired")
    rest = await client.get(events(place), **{"continue": expired.body["metadata"]["continue"]})
    assert f"{name}-3" in [item["metadata"]["name"] for item in rest.body["items"]]


async def test_a_list_of_an_exact_version_from_before_a_compaction_is_refused(
    client: Client, cluster: Cluster, place: str, name: str
) -> None:
    old, new = await make_events(client, place, f"{name}-1", f"{name}-2")
    await compact(cluster, new)
    refused = await client.get(events(place), resourceVersion=old, resourceVersionMatch="Exact")
    assert (refused.code, refused.reason) == (410, "Expired")


async def test_watches_of_a_cached_kind_survive_a_compaction(
    client: Client, cluster: Cluster, place: str, name: str
) -> None:
    first = (await client.create(config_maps(place), config_map(name))).body["metadata"]["resourceVersion"]
    changed = await client.patch(f"{config_maps(place)}/{name}", {"data": {"a": "1"}}, MERGE)
    await compact(cluster, changed.body["metadata"]["resourceVersion"])
    async with client.watch(config_maps(place), resourceVersion=first) as watch:
        assert (await watch.until("MODIFIED", name)).object["data"] == {"a": "1"}


async def test_a_version_from_the_future_is_a_timeout_with_a_cause_of_its_own(
    client: Client, place: str, name: str
) -> None:
    version = (await client.create(config_maps(place), config_map(name))).body["metadata"]["resourceVersion"]
    refused = await client.get(config_maps(place), resourceVersion=f"{version}000")
    assert (refused.code, refused.reason, refused.headers["Retry-After"]) == (504, "Timeout", "1")
    assert [cause["reason"] for cause in refused.causes] == ["ResourceVersionTooLarge"]
