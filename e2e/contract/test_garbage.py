"""What the garbage collector takes away when an owner goes."""

import pytest

from e2e.contract.client import Client, Object
from e2e.contract.objects import config_map, config_maps, fleet, fleets, owned_by, plan, plans

pytestmark = pytest.mark.e2e

NO_UID = "00000000-0000-0000-0000-000000000000"


async def make_family(client: Client, place: str, name: str) -> Object:
    """A fleet that owns a ConfigMap and a plan."""
    owner = (await client.create(fleets(place), fleet(name))).body
    assert (await client.create(config_maps(place), owned_by(owner, config_map(name)))).code == 201
    assert (await client.create(plans(place), owned_by(owner, plan(name)))).code == 201
    return owner


async def collected(client: Client, place: str, name: str) -> None:
    """Delete a fleet and wait until what it owned is gone."""
    async with (
        client.watch(plans(place), fieldSelector=f"metadata.name=chat-{name}") as plan_watch,
        client.watch(config_maps(place), fieldSelector=f"metadata.name={name}") as table_watch,
    ):
        gone = await client.delete(f"{fleets(place)}/{name}", {"propagationPolicy": "Background"})
        assert gone.code == 200
        assert (await client.get(f"{fleets(place)}/{name}")).code == 404
        await plan_watch.until("DELETED", f"chat-{name}")
        await table_watch.until("DELETED", name)


async def collector_knows_us(client: Client, place: str, name: str) -> None:
    """Wait for the garbage collector to look for new kinds, which it does every 30 seconds."""
    await make_family(client, place, f"{name}-known")
    await collected(client, place, f"{name}-known")


async def test_plans_and_tables_go_with_their_fleet(client: Client, place: str, name: str) -> None:
    await make_family(client, place, name)
    await collected(client, place, name)


async def test_orphaned_they_stay_without_an_owner(client: Client, place: str, name: str) -> None:
    await collector_knows_us(client, place, name)
    await make_family(client, place, name)
    async with client.watch(fleets(place), fieldSelector=f"metadata.name={name}") as watch:
        await client.delete(f"{fleets(place)}/{name}", {"propagationPolicy": "Orphan"})
        await watch.until("DELETED", name)
    for path in (f"{plans(place)}/chat-{name}", f"{config_maps(place)}/{name}"):
        assert "ownerReferences" not in (await client.get(path)).body["metadata"]


async def test_in_the_foreground_the_fleet_waits_for_what_it_owns(client: Client, place: str, name: str) -> None:
    await collector_knows_us(client, place, name)
    await make_family(client, place, name)
    async with client.watch(fleets(place), fieldSelector=f"metadata.name={name}") as watch:
        waiting = await client.delete(f"{fleets(place)}/{name}", {"propagationPolicy": "Foreground"})
        assert waiting.body["metadata"]["finalizers"] == ["foregroundDeletion"]
        await watch.until("DELETED", name)
    assert (await client.get(f"{config_maps(place)}/{name}")).code == 404


async def test_what_names_an_owner_of_another_uid_goes_at_once(client: Client, place: str, name: str) -> None:
    """A fleet made anew under the same name does not own what the first one left."""
    owner = (await client.create(fleets(place), fleet(name))).body
    async with client.watch(config_maps(place), fieldSelector=f"metadata.name={name}") as watch:
        await client.create(config_maps(place), owned_by(owner, config_map(name), uid=NO_UID))
        await watch.until("DELETED", name)
    assert (await client.get(f"{fleets(place)}/{name}")).code == 200
