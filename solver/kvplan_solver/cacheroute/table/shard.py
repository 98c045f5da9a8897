"""One binary shard: the keys of one hash prefix, grouped by home, as delta varints.

In/out: :class:`Shard` values and bytes; byte layout in docs/contracts/table-format.md (version 1). A shard
speaks of slots by name and carries no generation, so equal content has equal bytes and an equal name.
Nothing is compressed: hashes do not compress, the bytes would depend on the compressor's version, and a
reader needs no guard against decompression bombs (no byte can stand for more than one key).
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from kvplan_solver.cacheroute.table import varint
from kvplan_solver.cacheroute.table.refused import RefusalReason, TableRefused
from kvplan_solver.cacheroute.table.values import SLOT_LONGEST, SLOT_PATTERN, Home

SHARD_BYTES_MAX = 1_048_576
"""Decoded bytes a ConfigMap may hold."""

VERSION = 1
HASH_BITS = (40, 48, 56, 64)
"""Leading bits of a key's hash that a table may store."""

_HEADER = struct.Struct(">4sBBBxIII")
_MAGIC = b"KVPT"


@dataclass(frozen=True)
class Group:
    """All keys of one shard with one home: their stored hash bits below the prefix, ascending."""

    home: Home
    suffixes: Sequence[int]


@dataclass(frozen=True)
class Shard:
    """The keys whose stored hash starts with ``prefix`` (``prefix_bits`` wide), groups in order of home."""

    hash_bits: int
    prefix_bits: int
    prefix: int
    groups: tuple[Group, ...]

    @property
    def keys(self) -> int:
        """Number of keys."""
        return sum(len(group.suffixes) for group in self.groups)


def encode_shard(shard: Shard) -> bytes:
    """Write a shard; the same content gives the same bytes."""
    slots = sorted({slot for group in shard.groups for slot in _slots_of(group.home)})
    number = {slot: index for index, slot in enumerate(slots)}
    out = bytearray(
        _HEADER.pack(_MAGIC, VERSION, shard.hash_bits, shard.prefix_bits, shard.prefix, len(slots), len(shard.groups))
    )
    for slot in slots:
        name = slot.encode()
        varint.append(out, (len(name),))
        out += name
    for group in shard.groups:
        _append_group(out, group, number)
    return bytes(out)


def _slots_of(home: Home) -> tuple[str, ...]:
    return home.destinations if home.backup is None else (*home.destinations, home.backup)


def _append_group(out: bytearray, group: Group, number: dict[str, int]) -> None:
    home, suffixes = group.home, group.suffixes
    destinations = [number[slot] for slot in home.destinations]
    backup = 0 if home.backup is None else number[home.backup] + 1
    varint.append(out, (len(destinations), *destinations, backup, len(suffixes), suffixes[0]))
    varint.append(out, (later - earlier - 1 for earlier, later in pairwise(suffixes)))


def decode_shard(data: bytes) -> Shard:
    """Read a shard and check every rule of the format.

    Raises:
        TableRefused: ``MalformedShard`` or ``UnsupportedFormat``.
    """
    hash_bits, prefix_bits, prefix, slot_count, group_count = _header(data)
    slots, position = _read_slots(data, slot_count)
    _check_count("groups", group_count, len(data) - position)
    groups: list[Group] = []
    for _ in range(group_count):
        group, position = _read_group(data, position, slots)
        groups.append(group)
    _require(position == len(data), f"{len(data) - position} bytes after the last group")
    shard = Shard(hash_bits, prefix_bits, prefix, tuple(groups))
    _check_suffixes(shard)
    _require(_ascending([group.home.order for group in groups]), "homes not ascending")
    return shard


def _header(data: bytes) -> tuple[int, int, int, int, int]:
    _require(len(data) >= _HEADER.size, f"{len(data)} bytes are less than a header")
    magic, version, hash_bits, prefix_bits, prefix, slots, groups = _HEADER.unpack_from(data)
    _require(magic == _MAGIC, f"starts with {magic!r}")
    if version != VERSION:
        raise TableRefused(RefusalReason.UNSUPPORTED_FORMAT, f"shard version {version}, known is {VERSION}")
    _require(hash_bits in HASH_BITS, f"hashBits {hash_bits}")
    _require(prefix < 1 << prefix_bits <= 1 << 32, f"prefix {prefix} of {prefix_bits} bits")
    _require(data[7] == 0, "padding is not zero")
    return hash_bits, prefix_bits, prefix, slots, groups


def _read_slots(data: bytes, count: int) -> tuple[list[str], int]:
    position = _HEADER.size
    _check_count("slots", count, len(data) - position)
    slots: list[str] = []
    for _ in range(count):
        (length,), position = varint.read(data, position, 1)
        name = data[position : position + length]
        _require(len(name) == length > 0, "ends inside a slot name")
        position += length
        slots.append(_text(name))
    _require(_ascending(slots), "slot names not ascending")
    return slots, position


def _read_group(data: bytes, position: int, slots: Sequence[str]) -> tuple[Group, int]:
    (size,), position = varint.read(data, position, 1)
    _require(size >= 1, "a group without destinations")
    (*destinations, backup), position = varint.read(data, position, size + 1)
    _require(max(destinations) < len(slots) and backup <= len(slots), "a slot number out of range")
    home = Home(tuple(slots[d] for d in destinations), slots[backup - 1] if backup else None)
    _require(not home.fault, home.fault)
    (keys,), position = varint.read(data, position, 1)
    _require(keys >= 1, "a group without keys")
    deltas, position = varint.read(data, position, keys)
    suffixes = list(accumulate(deltas, lambda last, delta: last + delta + 1))
    return Group(home, suffixes), position


def _check_suffixes(shard: Shard) -> None:
    limit = 1 << shard.hash_bits - shard.prefix_bits
    for group in shard.groups:
        _require(group.suffixes[-1] < limit, "a hash outside the shard's prefix")


def _check_count(what: str, count: int, room: int) -> None:
    _require(count <= room, f"{count} {what} announced in {room} bytes")


def _ascending(values: Sequence[str] | Sequence[tuple[tuple[str, ...], str]]) -> bool:
    return all(a < b for a, b in pairwise(values))  # type: ignore[operator]


def _text(name: bytes) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise TableRefused(RefusalReason.MALFORMED_SHARD, f"slot name {name!r} is not UTF-8") from None
    _require(len(text) <= SLOT_LONGEST and re.fullmatch(SLOT_PATTERN, text) is not None, f"slot name {text!r:.80}")
    return text


def _require(condition: bool, detail: str) -> None:
    if not condition:
        raise TableRefused(RefusalReason.MALFORMED_SHARD, detail)
