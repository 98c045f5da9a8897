"""Whatever is torn, truncated, flipped, mixed or oversized is refused with one error; nothing else escapes."""

import hashlib
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_solver.cacheroute.table import (
    INDEX_BYTES_MAX,
    SHARD_BYTES_MAX,
    EncodedTable,
    Home,
    RefusalReason,
    Table,
    TableKeys,
    TableRefused,
    encode_table,
    read_index,
    read_table,
)
from kvplan_solver.cacheroute.table.shard import Group, Shard, decode_shard, encode_shard
from kvplan_solver.errors import InvalidInput

relaxed = settings(deadline=None, max_examples=60)
"""A busy machine must not fail a test."""

HEAD: dict[str, Any] = {
    "epoch": 1,
    "generation": 1,
    "mode": "plan",
    "hash": {"name": "blake2b-64-v1", "fingerprint": "0" * 16},
    "classes": [],
    "unmatched": "ColdTail",
    "grids": {},
    "routers": [],
    "slots": [],
}


def keys_of(seed: int, count: int = 300) -> TableKeys:
    g = random.Random(seed)
    homes = (Home(("a-0",), "a-1"), Home(("a-1",), None), Home(("a-0", "b-0"), None))
    return TableKeys(
        homes, [g.getrandbits(64) for _ in range(count)], [1.0] * count, [g.randrange(3) for _ in range(count)]
    )


SHARDED = encode_table("fleet", HEAD, keys_of(1), inline_keys_max=0)
OTHER = encode_table("fleet", {**HEAD, "generation": 2}, keys_of(2), inline_keys_max=0)
INLINE = encode_table("fleet", HEAD, keys_of(1, 40))
SHARD = SHARDED.shards[0]


def refused(build: Callable[[], Table | object]) -> RefusalReason:
    with pytest.raises(TableRefused) as refusal:
        build()
    return refusal.value.reason


def read_with(data: bytes) -> Table:
    return read_table(read_index(SHARDED.index), {SHARD.name: data})


def resealed(document: dict[str, Any]) -> str:
    """An index whose checksum is right, whatever its content."""
    text = json.dumps({**document, "checksum": "0" * 64}, indent=1, sort_keys=True)
    return text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()) if text.count("0" * 64) == 1 else text


hashes = st.integers(0, 2**64 - 1)
slot_names = st.from_regex(r"[a-z][a-z0-9]{0,5}-[0-9]{1,3}", fullmatch=True)
homes = st.builds(
    lambda slots, lone: Home(tuple(sorted(slots)), None) if len(slots) != 2 or not lone else
    Home((min(slots),), max(slots)),
    st.sets(slot_names, min_size=1, max_size=4), st.booleans(),
)  # fmt: skip


@relaxed
@given(st.dictionaries(hashes, homes, max_size=60), st.booleans())
def test_any_table_survives_the_wire(wanted: dict[int, Home], inline: bool) -> None:
    keys = TableKeys(tuple(wanted.values()), list(wanted), [1.0] * len(wanted), list(range(len(wanted))))
    encoded = encode_table("fleet", HEAD, keys, 4_000 if inline else 0)
    table = read_table(read_index(encoded.index), {s.name: s.data for s in encoded.shards})
    for key, home in wanted.items():
        if key not in encoded.collided:
            assert table.lookup(key) == home


@relaxed
@given(st.data())
def test_flipped_bit_in_an_index_is_refused(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from([SHARDED.index, INLINE.index])).encode())
    position, bit = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 7))
    raw[position] ^= 1 << bit
    assert refused(lambda: read_index(bytes(raw))) is RefusalReason.INDEX_CHECKSUM


@relaxed
@given(st.integers(0, len(SHARD.data) - 1), st.integers(0, 7))
def test_flipped_bit_in_a_shard_is_refused(position: int, bit: int) -> None:
    raw = bytearray(SHARD.data)
    raw[position] ^= 1 << bit
    assert refused(lambda: read_with(bytes(raw))) is RefusalReason.SHARD_DIGEST


@relaxed
@given(st.integers(0, len(SHARDED.index) - 1))
def test_truncated_index_is_refused(length: int) -> None:
    refused(lambda: read_index(SHARDED.index[:length]))


@relaxed
@given(st.integers(0, len(SHARD.data) - 1))
def test_truncated_shard_is_refused(length: int) -> None:
    assert refused(lambda: read_with(SHARD.data[:length])) is RefusalReason.SHARD_DIGEST


@relaxed
@given(st.integers(1, len(SHARD.data) - 1))
def test_torn_shard_of_two_generations_is_refused(cut: int) -> None:
    torn = SHARD.data[:cut] + OTHER.shards[0].data[cut:]
    if torn != SHARD.data:
        assert refused(lambda: read_with(torn)) is RefusalReason.SHARD_DIGEST


@relaxed
@given(st.integers(1, len(SHARDED.index) - 1))
def test_torn_index_of_two_generations_is_refused(cut: int) -> None:
    torn = SHARDED.index[:cut] + OTHER.index[cut:]
    if torn not in (SHARDED.index, OTHER.index):
        assert refused(lambda: read_index(torn)) is RefusalReason.INDEX_CHECKSUM


def test_shard_of_another_generation_under_the_named_one_is_refused() -> None:
    assert refused(lambda: read_with(OTHER.shards[0].data)) is RefusalReason.SHARD_DIGEST


def test_missing_shard_is_refused() -> None:
    others = {shard.name: shard.data for shard in OTHER.shards}
    assert refused(lambda: read_table(read_index(SHARDED.index), others)) is RefusalReason.SHARD_MISSING


def test_oversized_index_and_shard_are_refused_before_they_are_parsed() -> None:
    assert refused(lambda: read_index(" " * (INDEX_BYTES_MAX + 1))) is RefusalReason.OVERSIZED
    assert refused(lambda: read_with(b"\0" * (SHARD_BYTES_MAX + 1))) is RefusalReason.OVERSIZED


# Below, digests are right and the content is wrong: a faulty or hostile writer.


@relaxed
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_shard(data: bytes) -> None:
    refused(lambda: decode_shard(data))


@relaxed
@given(st.data())
def test_damaged_shard_with_a_right_digest_is_refused_or_still_well_formed(data: st.DataObject) -> None:
    raw = bytearray(SHARD.data)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(1, len(raw))) :]
    try:
        shard = decode_shard(bytes(raw))
    except TableRefused:
        return
    assert all(list(group.suffixes) == sorted(set(group.suffixes)) for group in shard.groups)


@relaxed
@given(st.text(max_size=300))
def test_arbitrary_text_is_no_index(text: str) -> None:
    refused(lambda: read_index(text))


@relaxed
@given(
    st.sampled_from(sorted({*HEAD, "shards", "inline", "top", "hashBits", "format"})),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
)
def test_index_with_a_right_checksum_and_any_field_replaced_is_refused_or_reads(field: str, value: object) -> None:
    document = dict(read_index(INLINE.index).document)
    text = resealed({**document, field: value})
    try:
        read_table(read_index(text), {})
    except TableRefused:
        return
    assert read_index(text).document[field] == value


def test_one_key_with_two_homes_is_refused() -> None:
    document = json.loads(encode_table("fleet", HEAD, keys_of(1, 3)).index)
    document["hashBits"] = 40
    first = next(iter(document["inline"]["keys"]))
    document["inline"]["keys"][first[:10] + "0" * 6] = 0
    assert refused(lambda: read_table(read_index(resealed(document)), {})) is RefusalReason.MALFORMED_SHARD


def test_inline_key_without_its_home_is_refused() -> None:
    document = json.loads(INLINE.index)
    document["inline"]["homes"] = document["inline"]["homes"][:1]
    assert refused(lambda: read_table(read_index(resealed(document)), {})) is RefusalReason.MALFORMED_INDEX


BAD_HOMES: dict[str, Home] = {
    "destinations out of order": Home(("a-1", "a-0"), None),
    "a destination twice": Home(("a-0", "a-0"), None),
    "a backup among the destinations": Home(("a-0", "a-1"), "a-1"),
    "no destination": Home((), "a-0"),
    "a name that is no slot": Home(("a",), None),
}


@pytest.mark.parametrize("home", BAD_HOMES.values(), ids=BAD_HOMES.keys())
def test_a_bad_home_is_refused_inline_as_in_a_shard(home: Home) -> None:
    document = json.loads(encode_table("fleet", HEAD, keys_of(1, 3)).index)
    entry = {"destinations": list(home.destinations)} | ({} if home.backup is None else {"backup": home.backup})
    document["inline"]["homes"][0] = entry
    assert refused(lambda: read_table(read_index(resealed(document)), {})) is RefusalReason.MALFORMED_INDEX
    data = encode_shard(Shard(64, 0, 0, (Group(home, (1, 2)),)))
    assert refused(lambda: decode_shard(data)) is RefusalReason.MALFORMED_SHARD


def test_groups_of_a_shard_out_of_order_are_refused() -> None:
    groups = (Group(Home(("b-0",), None), (1,)), Group(Home(("a-0",), None), (2,)))
    assert decode_shard(encode_shard(Shard(64, 0, 0, groups[::-1]))).keys == 2
    assert refused(lambda: decode_shard(encode_shard(Shard(64, 0, 0, groups)))) is RefusalReason.MALFORMED_SHARD


def test_index_of_a_later_format_is_refused_as_such() -> None:
    document = {**json.loads(INLINE.index), "format": 2, "novelty": {}}
    assert refused(lambda: read_index(resealed(document))) is RefusalReason.UNSUPPORTED_FORMAT


@cache
def two_shards() -> EncodedTable:
    return encode_table("fleet", HEAD, keys_of(3, 280_000))


@pytest.mark.parametrize("change", ["swap", "drop", "double"])
def test_shards_that_are_not_one_whole_split_are_refused(change: str) -> None:
    big = two_shards()
    assert len(big.shards) == 2
    document = json.loads(big.index)
    entries = document["shards"]
    document["shards"] = {"swap": entries[::-1], "drop": entries[:-1], "double": [*entries, entries[0]]}[change]
    shards = {shard.name: shard.data for shard in big.shards}
    index = read_index(resealed(document))
    assert refused(lambda: read_table(index, shards)) is RefusalReason.MALFORMED_SHARD


def test_deeply_nested_json_is_refused() -> None:
    text = resealed({}).replace("{", '{"deep": ' + "[" * 100_000 + "]" * 100_000 + ",", 1)
    refused(lambda: read_index(text))


def test_refusal_reasons_are_metric_labels() -> None:
    assert all(reason.value.isidentifier() for reason in RefusalReason)
    assert not issubclass(TableRefused, InvalidInput)
