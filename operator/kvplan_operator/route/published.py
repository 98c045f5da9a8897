"""What the cluster holds of a fleet's table: the index document, its notes, the shards. The operator's only memory.

Inputs: the ConfigMaps labelled with the fleet, by name. Output: a frozen ``Published``. An index that someone edited
does not match its checksum and counts as none. Pure.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kvplan_operator.api.labels import (
    AFFINITY_ANNOTATION,
    FLEET_LABEL,
    GENERATION_ANNOTATION,
    INSTALLED_ANNOTATION,
    RETIRED_ANNOTATION,
    SHARES_ANNOTATION,
)
from kvplan_operator.kube.resources import SERVING_FLEETS
from kvplan_operator.model.instants import instant_or_zero
from kvplan_operator.model.pods import Object, labels_of, part, parts
from kvplan_operator.route.slots import PublishedSlot, slots_from_wire
from kvplan_solver.cacheroute.gate import AffinityState
from kvplan_solver.cacheroute.table import Index, Table, TableRefused, read_index, read_table

INDEX_KEY = "index.json"
SHARD_KEY = "shard.bin"

Held = Mapping[str, Mapping[str, tuple[int, int]]]
"""Share that may still be in use, and the generation that lowered it: by group of slots, by router."""


def index_name(fleet: str) -> str:
    """Name of the index ConfigMap."""
    return f"{fleet}-table"


def is_shard_name(name: str, fleet: str) -> bool:
    """Whether a ConfigMap's name is that of a shard of this fleet."""
    return name.startswith(f"{index_name(fleet)}-")


def shards_of(document: Mapping[str, Any] | None) -> frozenset[str]:
    """Shards that an index names."""
    return frozenset() if document is None else frozenset(shard["name"] for shard in document["shards"])


@dataclass(frozen=True, eq=False)
class Published:
    """The table as the cluster has it.

    Attributes:
        uid: of the index object.
        resource_version: of the index object; a write that carries it is refused once the object changed.
        epoch: creation time of the index object, seconds.
        generation: of the index, kept beside it too, so that an altered one is followed by a later one.
        document: the checked index; None where there is none yet, or it was altered.
        fault: why the text that is there is no index; empty where there is none or it is good.
        shards: creation time of each shard object, seconds since the epoch, by name.
        shard_bytes: content of the shards; absent for objects that are no shard.
        shard_uids: identity of each shard object, by name.
        affinity: what the gate said last.
        installed: when the keys were installed, seconds since the epoch; 0 where never.
        held: shares that routers may still use, see ``shares``.
        retired: since when a shard is no longer named, seconds since the epoch.
        versions: resource version of every object it was read from, by name.
    """

    uid: str
    resource_version: str
    epoch: int
    generation: int = 0
    document: Mapping[str, Any] | None = None
    fault: str = ""
    shards: Mapping[str, float] = field(default_factory=dict)
    shard_bytes: Mapping[str, bytes] = field(default_factory=dict)
    shard_uids: Mapping[str, str] = field(default_factory=dict)
    affinity: AffinityState = AffinityState.UNKNOWN
    installed: float = 0.0
    held: Held = field(default_factory=dict)
    retired: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int]:
        """(epoch, generation) of the index; a router that reports at least this has it."""
        return self.epoch, self.generation

    @property
    def slots(self) -> tuple[PublishedSlot, ...]:
        """Slots of the index; none without one."""
        return () if self.document is None else slots_from_wire(self.document["slots"])

    @property
    def named_shards(self) -> frozenset[str]:
        """Shards that the index names."""
        return shards_of(self.document)

    @cached_property
    def table(self) -> Table | None:
        """The keys in force, decoded; None without an index, or where a shard is missing or altered."""
        if self.document is None:
            return None
        try:
            return read_table(Index(self.document), self.shard_bytes)
        except TableRefused:
            return None


def published(config_maps: Mapping[str, Object], fleet: str, last: Published | None = None) -> Published | None:
    """Read what is there; None where the index object does not exist.

    Args:
        config_maps: by name; those without the fleet's label are no shards.
        fleet: its name.
        last: an earlier reading, given back where no object changed, so that nothing is decoded twice.
    """
    found = config_maps.get(index_name(fleet))
    if found is None or not is_index(found, fleet):
        return None
    shards = {name: item for name, item in config_maps.items() if _is_shard(name, item, fleet)}
    versions = {name: _version(item) for name, item in (*shards.items(), (index_name(fleet), found))}
    if last is not None and last.versions == versions:
        return last
    metadata, notes = part(found, "metadata"), part(part(found, "metadata"), "annotations")
    epoch = int(instant_or_zero(str(metadata.get("creationTimestamp") or "")))
    document, fault = _document(part(found, "data").get(INDEX_KEY), epoch)
    return Published(
        uid=str(metadata.get("uid") or ""),
        resource_version=_version(found),
        epoch=epoch,
        generation=max(int(_number(notes.get(GENERATION_ANNOTATION))), document["generation"] if document else 0),
        document=document,
        fault=fault,
        shards={name: _created(item) for name, item in shards.items()},
        shard_bytes={name: data for name, item in shards.items() if (data := _shard_bytes(item)) is not None},
        shard_uids={name: str(part(item, "metadata").get("uid") or "") for name, item in shards.items()},
        affinity=_affinity(notes.get(AFFINITY_ANNOTATION)),
        installed=_number(notes.get(INSTALLED_ANNOTATION)),
        held=_held(notes.get(SHARES_ANNOTATION)),
        retired={str(name): _number(at) for name, at in _json_object(notes.get(RETIRED_ANNOTATION)).items()},
        versions=versions,
    )


def _document(text: object, epoch: int) -> tuple[Mapping[str, Any] | None, str]:
    if not isinstance(text, str) or not text:
        return None, ""
    try:
        document = read_index(text).document
    except TableRefused as refusal:
        return None, str(refusal)
    if document["epoch"] != epoch:
        return None, f"epoch {document['epoch']} is not the object's creation time {epoch}"
    return document, ""


def is_index(item: Object, fleet: str) -> bool:
    """Whether a ConfigMap under the name of the index is kvplan's: somebody may have taken off the label."""
    owners = parts(part(item, "metadata"), "ownerReferences")
    owned = any(owner.get("kind") == SERVING_FLEETS.kind and owner.get("name") == fleet for owner in owners)
    return owned or labels_of(item).get(FLEET_LABEL) == fleet


def _is_shard(name: str, item: Object, fleet: str) -> bool:
    """Whether kvplan wrote it: a ConfigMap with lengths may bear any name."""
    return is_shard_name(name, fleet) and labels_of(item).get(FLEET_LABEL) == fleet


def _version(item: Object) -> str:
    return str(part(item, "metadata").get("resourceVersion") or "")


def _created(item: Object) -> float:
    return instant_or_zero(str(part(item, "metadata").get("creationTimestamp") or ""))


def _shard_bytes(item: Object) -> bytes | None:
    try:
        return base64.b64decode(str(part(item, "binaryData")[SHARD_KEY]), validate=True)
    except (KeyError, binascii.Error):
        return None


def _affinity(text: object) -> AffinityState:
    return next((state for state in AffinityState if state.value == text), AffinityState.UNKNOWN)


def _number(text: object) -> float:
    try:
        return float(str(text))
    except ValueError:
        return 0.0


def _held(text: object) -> Held:
    """The note on shares; an entry that is no pair of integers is left out."""
    return {
        group: {name: (pair[0], pair[1]) for name, pair in entries.items() if _is_pair(pair)}
        for group, entries in _json_object(text).items()
        if isinstance(entries, dict)
    }


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)


def _json_object(text: object) -> dict[str, Any]:
    try:
        value = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
