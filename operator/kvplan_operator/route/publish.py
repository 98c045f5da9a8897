"""Writes a fleet's table to the cluster: shards first, then the index that names them; collects old shards later.

Inputs: a client, what a round of routing decided, what the cluster has. Outputs: ConfigMaps. A reader of the index
therefore always finds the shards it names, and a crash in between leaves the old table in force. Every write of the
index carries the version that was read: of two leaders one is refused. Does nothing twice that was done.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.errors import OperatorError
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import AlreadyExists, NotFound
from kvplan_operator.kube.resources import CONFIG_MAPS, SERVING_FLEETS
from kvplan_operator.model.pods import name_of
from kvplan_operator.route.objects import empty_index, index_object, shard_object
from kvplan_operator.route.publication import Publication
from kvplan_operator.route.published import Published, index_name, is_index, published, shards_of
from kvplan_solver.cacheroute.table import ShardFile

GRACE_SECONDS: Final = 300.0
"""How long a shard stays after the index stopped naming it: a router may still be fetching it."""


async def read_published(client: Client, fleet: ServingFleet) -> Published | None:
    """What the cluster has, read afresh; None where there is no index object."""
    labels = f"{FLEET_LABEL}={fleet.metadata.name}"
    listing = await client.list(CONFIG_MAPS, fleet.metadata.namespace, labels=labels)
    return published({name_of(item): item for item in listing.items}, fleet.metadata.name)


class NameTaken(OperatorError):
    """Somebody else's ConfigMap has the name of the index."""


async def ensure_index(client: Client, fleet: ServingFleet) -> Published:
    """The index object, created without content if it is not there: its creation time is the epoch.

    A fleet that is deleted takes its index with it, so the fleet is asked for first: no watch may have told yet.

    Raises:
        NameTaken: an object that is not kvplan's has its name.
        NotFound: the fleet is gone.
        KubeError: it cannot be read or created.
    """
    name, namespace = fleet.metadata.name, fleet.metadata.namespace
    there = await client.find(SERVING_FLEETS, namespace, name)
    if there is None or there["metadata"].get("uid") != fleet.metadata.uid:
        raise NotFound(f"ServingFleet {namespace}/{name} is gone")
    try:
        created = await client.create(CONFIG_MAPS, empty_index(fleet))
    except AlreadyExists:
        created = await client.get(CONFIG_MAPS, namespace, index_name(name))
        if not is_index(created, name):
            raise NameTaken(
                f"ConfigMap {namespace}/{index_name(name)} is not kvplan's, and the fleet's table needs its name: "
                "rename it, or the fleet"
            ) from None
    found = published({index_name(name): created}, name)
    if found is None:
        raise NotFound(f"ConfigMap {namespace}/{index_name(name)} is gone again")
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


async def collect(
    client: Client, fleet: ServingFleet, found: Published, now: float, document: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Delete shards that no index has named for the grace time; give back their names.

    Args:
        client: fenced.
        fleet: whose shards.
        found: what the cluster had before this round.
        now: seconds since the epoch.
        document: the index in force since then; the shards that it names stay.
    """
    names = collectable(found, now, document)
    await _delete(client, fleet, found, names)
    return names


def collectable(found: Published, now: float, document: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Shards that can go: not named, and not for the grace time; those never named count from their creation."""
    named = found.named_shards | shards_of(document)
    since = {name: found.retired.get(name, created) for name, created in found.shards.items()}
    return tuple(sorted(name for name, at in since.items() if name not in named and now - at >= GRACE_SECONDS))


async def withdraw(client: Client, fleet: ServingFleet, found: Published) -> None:
    """Delete the index, then the shards: routers answer without an override from then on."""
    name, namespace = index_name(fleet.metadata.name), fleet.metadata.namespace
    await client.delete(CONFIG_MAPS, namespace, name, uid=found.uid, resource_version=found.resource_version)
    await _delete(client, fleet, found, found.shards)


async def _delete(client: Client, fleet: ServingFleet, found: Published, names: Collection[str]) -> None:
    """Delete shards as they were seen: an object that took a name since stays."""
    for name in names:
        await client.delete(CONFIG_MAPS, fleet.metadata.namespace, name, uid=found.shard_uids[name])
