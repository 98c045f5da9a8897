"""From admitted keys and the operator's part of the index to index text and binary shards.

In: the fleet's name, the head of the index document, :class:`TableKeys`. Out: :class:`EncodedTable`. The
bytes depend on the content alone: not on row order, not on PYTHONHASHSEED. Standard library only. Must not
see a key's text, only its hash. Contract: docs/contracts/table-format.md.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan_solver.cacheroute.table.index import (
    FORMAT,
    INDEX_BYTES_MAX,
    INLINE_KEYS_MAX,
    TOP_KEYS_MAX,
    write_index,
)
from kvplan_solver.cacheroute.table.rows import check_rows
from kvplan_solver.cacheroute.table.shard import HASH_BITS, SHARD_BYTES_MAX, Group, Shard, encode_shard
from kvplan_solver.cacheroute.table.values import KEY_BITS, Home, TableKeys
from kvplan_solver.errors import InvalidInput

_FALSE_MATCH_BITS = 20
"""A key outside the table meets a stored one with probability at most 2^-20; it then only joins a warm
destination, which costs nothing but a cache miss."""
_BYTES_PER_KEY_LOW = 4
_PREFIX_BITS_MAX = 12
_INLINE_BYTES_MAX = INDEX_BYTES_MAX // 2
"""The other half of the index stays free for classes and slots."""


@dataclass(frozen=True)
class ShardFile:
    """One shard as it is published: its content-addressed name and its bytes."""

    name: str
    data: bytes
    keys: int

    def entry(self) -> dict[str, Any]:
        """The line of this shard in the index."""
        sha256 = hashlib.sha256(self.data).hexdigest()
        return {"name": self.name, "sha256": sha256, "keys": self.keys, "bytes": len(self.data)}


@dataclass(frozen=True)
class EncodedTable:
    """A table on the wire.

    Attributes:
        index: text of the index ConfigMap.
        shards: binary shards, in order of hash prefix; empty when the keys are in the index.
        collided: hashes dropped because a hotter key has the same stored bits, ascending.
    """

    index: str
    shards: tuple[ShardFile, ...]
    collided: tuple[int, ...]


def encode_table(
    fleet: str, head: Mapping[str, Any], keys: TableKeys, inline_keys_max: int = INLINE_KEYS_MAX
) -> EncodedTable:
    """Write a table.

    Args:
        fleet: name of the fleet, prefix of the shards' names.
        head: the index fields that are not derived from the keys (epoch, generation, mode, hash, classes, …).
        keys: the admitted keys.
        inline_keys_max: up to this many keys go into the index itself, at most 4,000 and half of its bytes.

    Raises:
        InvalidInput: the head or a row breaks the format, or the index grows too large.
    """
    check_rows(keys)
    fits_inline = len(keys.hashes) <= min(inline_keys_max, INLINE_KEYS_MAX) and _inline_bytes(keys) <= _INLINE_BYTES_MAX
    hash_bits = KEY_BITS if fits_inline else stored_hash_bits(len(keys.hashes))
    kept, collided = _without_collisions(keys, hash_bits)
    inline = _inline(keys, kept if fits_inline else {})
    shards = () if fits_inline else _shards(fleet, keys, kept, hash_bits)
    document = {
        **head, "format": FORMAT, "hashBits": hash_bits, "inline": inline, "top": _top(keys, kept),
        "shards": [shard.entry() for shard in shards],
    }  # fmt: skip
    return EncodedTable(write_index(document), shards, collided)


def stored_hash_bits(keys: int) -> int:
    """Leading hash bits that a table of this size stores: the fewest that keep false matches below 2^-20."""
    return next(bits for bits in HASH_BITS if bits == KEY_BITS or keys <= 1 << bits - _FALSE_MATCH_BITS)


def _without_collisions(keys: TableKeys, hash_bits: int) -> tuple[dict[int, int], tuple[int, ...]]:
    """Stored hash → row, the hotter row winning; and the hashes of the rows that lost."""
    shift = KEY_BITS - hash_bits
    stored = [key >> shift for key in keys.hashes]
    rows = dict(zip(stored, range(len(stored)), strict=True))
    if len(rows) == len(stored):
        return rows, ()
    shared = {value for value, count in Counter(stored).items() if count > 1}
    rivals = sorted(
        (row for row, value in enumerate(stored) if value in shared),
        key=lambda row: (-keys.rates[row], keys.hashes[row], keys.homes[keys.home_of[row]].order),
    )
    winners: dict[int, int] = {}
    lost = [keys.hashes[row] for row in rivals if winners.setdefault(stored[row], row) != row]
    return rows | winners, tuple(sorted(lost))


def _groups(keys: TableKeys, kept: Mapping[int, int]) -> list[Group]:
    """Stored hashes by home, both ascending."""
    members: dict[int, list[int]] = {}
    home_of = keys.home_of
    for stored, row in kept.items():
        members.setdefault(home_of[row], []).append(stored)
    merged: dict[Home, list[int]] = {}
    for number, hashes in members.items():
        merged.setdefault(keys.homes[number], []).extend(hashes)
    return [Group(home, sorted(merged[home])) for home in sorted(merged, key=lambda home: home.order)]


def _inline(keys: TableKeys, kept: Mapping[int, int]) -> dict[str, Any]:
    groups = _groups(keys, kept)
    by_hash = {f"{stored:016x}": number for number, group in enumerate(groups) for stored in group.suffixes}
    return {"homes": [_home_entry(group.home) for group in groups], "keys": by_hash}


def _inline_bytes(keys: TableKeys) -> int:
    """About what the keys take in the index text."""
    slots = sum(12 + len(slot) for home in set(keys.homes) for slot in (*home.destinations, home.backup or ""))
    return 30 * len(keys.hashes) + 40 * len(keys.homes) + slots


def _home_entry(home: Home) -> dict[str, Any]:
    backup = {} if home.backup is None else {"backup": home.backup}
    return {"destinations": list(home.destinations), **backup}


def _shards(fleet: str, keys: TableKeys, kept: Mapping[int, int], hash_bits: int) -> tuple[ShardFile, ...]:
    """The fewest equal splits by hash prefix (a power of two) whose every part fits a ConfigMap."""
    groups = _groups(keys, kept)
    first = max(0, (_BYTES_PER_KEY_LOW * len(kept) - 1) // SHARD_BYTES_MAX).bit_length()
    for prefix_bits in range(first, _PREFIX_BITS_MAX + 1):
        files = _split(fleet, groups, hash_bits, prefix_bits)
        if files is not None:
            return files
    raise InvalidInput("table", "keys", len(kept), f"at most {1 << _PREFIX_BITS_MAX} shards of 1 MiB are possible")


def _split(fleet: str, groups: Sequence[Group], hash_bits: int, prefix_bits: int) -> tuple[ShardFile, ...] | None:
    """All shards of one split, or None as soon as one is too large."""
    files: list[ShardFile] = []
    for prefix in range(1 << prefix_bits):
        shard = _part(groups, hash_bits, prefix_bits, prefix)
        data = encode_shard(shard)
        if len(data) > SHARD_BYTES_MAX:
            return None
        files.append(ShardFile(shard_name(fleet, hashlib.sha256(data).hexdigest()), data, shard.keys))
    return tuple(files)


def shard_name(fleet: str, sha256: str) -> str:
    """Content-addressed ConfigMap name of a shard."""
    return f"{fleet}-table-{sha256[:16]}"


def _part(groups: Sequence[Group], hash_bits: int, prefix_bits: int, prefix: int) -> Shard:
    width = hash_bits - prefix_bits
    low = prefix << width
    cut: list[Group] = []
    for group in groups:
        start = bisect_left(group.suffixes, low)
        end = bisect_left(group.suffixes, low + (1 << width))
        if start < end:
            cut.append(Group(group.home, [stored - low for stored in group.suffixes[start:end]]))
    return Shard(hash_bits, prefix_bits, prefix, tuple(cut))


def _top(keys: TableKeys, kept: Mapping[int, int]) -> list[dict[str, Any]]:
    hottest = sorted(kept.values(), key=lambda row: (-keys.rates[row], keys.hashes[row]))[:TOP_KEYS_MAX]
    return [
        {
            "hash": f"{keys.hashes[row]:016x}",
            "requestsPerSecondMilli": round(keys.rates[row] * 1_000),
            "destinations": list(keys.homes[keys.home_of[row]].destinations),
        }
        for row in hottest
    ]
