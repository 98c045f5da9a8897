"""Writes a fleet's table to the cluster: shards first, then the index that names them; collects old shards later.

Inputs: a client, what a round of routing decided, what the cluster has. Outputs: ConfigMaps. A reader of the index
therefore always finds the shards it names, and a crash in between leaves the old table in force. Every write of the
index carries the version that was read: of two leaders one is refused. Does nothing twice that was done.
"""

from collections.abc import Collection
from typing import Final

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import AlreadyExists, NotFound
from kvplan_operator.kube.resources import CONFIG_MAPS
from kvplan_operator.model.pods import name_of
from kvplan_operator.route.objects import empty_index, index_object, shard_object
from kvplan_operator.route.publication import Publication
from kvplan_operator.route.published import Published, index_name, is_shard_name, published
from kvplan_solver.cacheroute.table import ShardFile

GRACE_SECONDS: Final = 300.0
"""How long a shard stays after the index stopped naming it: a router may still be fetching it."""


async def read_published(client: Client, fleet: ServingFleet) -> Published | None:
    """What the cluster has, read afresh; None where there is no index object."""
    labels = f"{FLEET_LABEL}={fleet.metadata.name}"
    listing = await client.list(CONFIG_MAPS, fleet.metadata.namespace, labels=labels)
    return published({name_of(item): item for item in listing.items}, fleet.metadata.name)


async def ensure_index(client: Client, fleet: ServingFleet) -> Published:
    """The index object, created without content if it is not there: its creation time is the epoch.

    Raises:
        KubeError: it cannot be read or created.
    """
    name = fleet.metadata.name
    try:
        created = await client.create(CONFIG_MAPS, empty_index(fleet))
    except AlreadyExists:
        created = await client.get(CONFIG_MAPS, fleet.metadata.namespace, index_name(name))
    found = published({index_name(name): created}, name)
    if found is None:
        raise NotFound(f"ConfigMap {fleet.metadata.namespace}/{index_name(name)} is gone again")
    return found


async def publish(client: Client, fleet: ServingFleet, publication: Publication, before: Published) -> None:
    """Write a table; the old one stays in force until the last write.

    Args:
        client: fenced.
        fleet: whose table.
        publication: what to write.
        before: what the decision was taken on.

    Raises:
        Conflict: somebody changed the index meanwhile: read and decide again.
        Gone: the index was re-created meanwhile: the same.
        KubeError: nothing that a router would read was changed.
    """
    for shard in publication.shards:
        await _write_shard(client, fleet, shard, before)
    # Force: whoever edited the index by hand loses the field; nobody else may own it.
    await client.apply(CONFIG_MAPS, index_object(fleet, publication, before), force=True)


async def _write_shard(client: Client, fleet: ServingFleet, shard: ShardFile, before: Published) -> None:
    if before.shard_bytes.get(shard.name) == shard.data:
        return
    document, namespace = shard_object(fleet, shard), fleet.metadata.namespace
    try:
        await client.create(CONFIG_MAPS, document)
    except AlreadyExists:
        present = await client.get(CONFIG_MAPS, namespace, shard.name)
        if present.get("binaryData") != document["binaryData"]:
            await client.delete(CONFIG_MAPS, namespace, shard.name, uid=present["metadata"]["uid"])
            await client.create(CONFIG_MAPS, document)


async def collect(client: Client, fleet: ServingFleet, found: Published, now: float) -> tuple[str, ...]:
    """Delete shards that no index has named for the grace time; give back their names.

    Args:
        client: fenced.
        fleet: whose shards.
        found: what the cluster has.
        now: seconds since the epoch.
    """
    names = collectable(found, now)
    await _delete(client, fleet, names)
    return names


def collectable(found: Published, now: float) -> tuple[str, ...]:
    """Shards that can go: not named, and not for the grace time; those never named count from their creation."""
    since = {name: found.retired.get(name, created) for name, created in found.shards.items()}
    return tuple(sorted(n for n, at in since.items() if n not in found.named_shards and now - at >= GRACE_SECONDS))


async def withdraw(client: Client, fleet: ServingFleet, found: Published) -> None:
    """Delete the index, then the shards: routers answer without an override from then on."""
    name, namespace = index_name(fleet.metadata.name), fleet.metadata.namespace
    await client.delete(CONFIG_MAPS, namespace, name, uid=found.uid, resource_version=found.resource_version)
    await _delete(client, fleet, found.shards)


async def _delete(client: Client, fleet: ServingFleet, names: Collection[str]) -> None:
    for name in names:
        if is_shard_name(name, fleet.metadata.name):
            await client.delete(CONFIG_MAPS, fleet.metadata.namespace, name)
