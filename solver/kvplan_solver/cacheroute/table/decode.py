"""From index and shards to a look-up, or one clear refusal. Standard library only.

In: a checked :class:`Index` and the shards it names (bytes by name). Out: a :class:`Table`; every torn,
truncated, flipped, oversized, stale or mixed input raises :class:`TableRefused`, and the caller keeps the
table it has. Must not fetch anything. Contract: docs/contracts/table-format.md.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kvplan_solver.cacheroute.table.index import Index
from kvplan_solver.cacheroute.table.refused import RefusalReason, TableRefused
from kvplan_solver.cacheroute.table.shard import SHARD_BYTES_MAX, Shard, decode_shard
from kvplan_solver.cacheroute.table.values import KEY_BITS, Home, Table

_HOME_BITS = 32
_HOME_MASK = (1 << _HOME_BITS) - 1


def read_table(
    index: Index,
    shards: Mapping[str, bytes],
    current: Table | None = None,
    fingerprint: str | None = None,
) -> Table:
    """Build the look-up that an index describes.

    Args:
        index: the checked index.
        shards: bytes of at least the shards that the index names; others are ignored.
        current: the table in force, which an older one must not replace.
        fingerprint: of the reader's hash secret; None skips that check.

    Raises:
        TableRefused: with the reason; nothing of the input has taken effect.
    """
    check_succession(index, current)
    _check_hash(index, fingerprint)
    numbers: dict[Home, int] = {}
    columns = array("Q"), array("I")
    for part in _parts(index, shards, numbers):
        _append_sorted(part, columns)
    return Table(index.order, index.checksum, index.document["hashBits"], tuple(numbers), columns)


def check_succession(index: Index, current: Table | None) -> None:
    """Refuse an index that is older than the table in force, or a second one of the same generation.

    Raises:
        TableRefused: Stale or ConflictingGeneration.
    """
    if current is None or index.order > current.order:
        return
    if index.order < current.order:
        raise TableRefused(RefusalReason.STALE, f"{index.order} is older than {current.order}")
    if index.checksum != current.checksum:
        raise TableRefused(RefusalReason.CONFLICTING_GENERATION, f"two contents for {index.order}")


def _check_hash(index: Index, fingerprint: str | None) -> None:
    """Without a key nothing was hashed: a first table comes before its writer has heard a reader's fingerprint."""
    document = index.document
    named, has_keys = document["hash"]["fingerprint"], document["inline"]["keys"] or document["shards"]
    if has_keys and fingerprint is not None and named != fingerprint:
        raise TableRefused(RefusalReason.FOREIGN_HASH, f"keys hashed under {named}, ours is {fingerprint}")


def _parts(index: Index, shards: Mapping[str, bytes], numbers: dict[Home, int]) -> Iterator[list[int]]:
    """(stored hash, home number) packed into one integer each; a list per part, parts ascending."""
    document = index.document
    yield _inline_part(document["inline"], document["hashBits"], numbers)
    for position, entry in enumerate(document["shards"]):
        data = _verified(entry, shards)
        yield _shard_part(index, position, entry, decode_shard(data), numbers)


def _inline_part(inline: Mapping[str, Any], hash_bits: int, numbers: dict[Home, int]) -> list[int]:
    homes = [Home(tuple(entry["destinations"]), entry.get("backup")) for entry in inline["homes"]]
    for home in homes:
        if home.fault:
            raise TableRefused(RefusalReason.MALFORMED_INDEX, f"inline home {home.order!r:.80}: {home.fault}")
    shift = KEY_BITS - hash_bits
    packed: list[int] = []
    for text, home_number in inline["keys"].items():
        if home_number >= len(homes):
            raise TableRefused(RefusalReason.MALFORMED_INDEX, f"inline key {text} has no home {home_number}")
        number = numbers.setdefault(homes[home_number], len(numbers))
        packed.append(int(text, 16) >> shift << _HOME_BITS | number)
    return packed


def _verified(entry: Mapping[str, Any], shards: Mapping[str, bytes]) -> bytes:
    name = entry["name"]
    data = shards.get(name)
    if data is None:
        raise TableRefused(RefusalReason.SHARD_MISSING, f"shard {name} is named by the index and not there")
    if len(data) > SHARD_BYTES_MAX:
        raise TableRefused(RefusalReason.OVERSIZED, f"shard {name} has {len(data)} bytes")
    sha256 = hashlib.sha256(data).hexdigest()
    named = len(data) == entry["bytes"] and sha256 == entry["sha256"] and name.endswith(f"-{sha256[:16]}")
    if not named:
        raise TableRefused(RefusalReason.SHARD_DIGEST, f"shard {name} is not the one the index names")
    return data


def _shard_part(
    index: Index, position: int, entry: Mapping[str, Any], shard: Shard, numbers: dict[Home, int]
) -> list[int]:
    _check_place(index, position, entry, shard)
    base = shard.prefix << shard.hash_bits - shard.prefix_bits
    packed: list[int] = []
    for group in shard.groups:
        number = numbers.setdefault(group.home, len(numbers)) + (base << _HOME_BITS)
        packed.extend([(suffix << _HOME_BITS) + number for suffix in group.suffixes])
    return packed


def _check_place(index: Index, position: int, entry: Mapping[str, Any], shard: Shard) -> None:
    """The shards must be all parts of one split, in order of prefix."""
    document = index.document
    in_place = shard.prefix == position and 1 << shard.prefix_bits == len(document["shards"])
    agrees = shard.hash_bits == document["hashBits"] and shard.keys == entry["keys"]
    if not (in_place and agrees):
        detail = f"shard {entry['name']} does not belong at position {position} of this index"
        raise TableRefused(RefusalReason.MALFORMED_SHARD, detail)


def _append_sorted(part: list[int], columns: tuple["array[int]", "array[int]"]) -> None:
    """Append one part to the two columns; every hash must lie above the last one."""
    part.sort()
    hashes, homes = columns
    start = len(hashes)
    hashes.extend([value >> _HOME_BITS for value in part])
    homes.extend([value & _HOME_MASK for value in part])
    if not _strictly_ascending(hashes[max(0, start - 1) :]):
        raise TableRefused(RefusalReason.MALFORMED_SHARD, "one key has two homes")


def _strictly_ascending(hashes: Iterable[int]) -> bool:
    last = -1
    for value in hashes:
        if value <= last:
            return False
        last = value
    return True
