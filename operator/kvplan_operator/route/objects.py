"""The ConfigMaps of a fleet's table as documents: the index, its notes, its shards.

Inputs: the fleet, a ``Publication``. Outputs: plain objects for the API server, owned by the fleet, so that they go
when it goes. A shard's name is the digest of its bytes: the same content is the same object. Pure.
"""

import base64
import json
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import (
    AFFINITY_ANNOTATION,
    API_VERSION,
    FLEET_LABEL,
    GENERATION_ANNOTATION,
    INSTALLED_ANNOTATION,
    RETIRED_ANNOTATION,
    SHARES_ANNOTATION,
)
from kvplan_operator.route.publication import Publication
from kvplan_operator.route.published import INDEX_KEY, SHARD_KEY, Published, index_name
from kvplan_solver.cacheroute.table import ShardFile

Document = dict[str, Any]


def empty_index(fleet: ServingFleet) -> Document:
    """The index object before its first content: its creation time is the epoch."""
    return _config_map(fleet, index_name(fleet.metadata.name))


def index_object(fleet: ServingFleet, publication: Publication, before: Published) -> Document:
    """The index object with its content; refused once the object is another, or changed since it was read."""
    document = _config_map(fleet, index_name(fleet.metadata.name))
    document["metadata"] |= {
        "uid": before.uid,
        "resourceVersion": before.resource_version,
        "annotations": _notes(publication),
    }
    return document | {"data": {INDEX_KEY: publication.index}}


def shard_object(fleet: ServingFleet, shard: ShardFile) -> Document:
    """One shard; immutable, as its name is its content."""
    data = base64.b64encode(shard.data).decode()
    return _config_map(fleet, shard.name) | {"binaryData": {SHARD_KEY: data}, "immutable": True}


def _notes(publication: Publication) -> dict[str, str]:
    notes: dict[str, str] = {
        AFFINITY_ANNOTATION: publication.affinity.value,
        GENERATION_ANNOTATION: str(publication.generation),
        INSTALLED_ANNOTATION: f"{publication.installed:.3f}",
    }
    if publication.held:
        notes[SHARES_ANNOTATION] = _json(publication.held)
    if publication.retired:
        notes[RETIRED_ANNOTATION] = _json({name: round(at, 3) for name, at in publication.retired.items()})
    return notes


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _config_map(fleet: ServingFleet, name: str) -> Document:
    owner = {
        "apiVersion": API_VERSION,
        "kind": fleet.kind,
        "name": fleet.metadata.name,
        "uid": fleet.metadata.uid,
        # Deleting the fleet must not wait for its table, nor the table outlive it.
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": fleet.metadata.namespace,
            "labels": {FLEET_LABEL: fleet.metadata.name},
            "ownerReferences": [owner],
        },
    }
