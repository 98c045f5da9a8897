"""The table on the wire: sizes, collisions, order of generations, determinism, purity of the reader."""

import random
import subprocess
import sys
from array import array
from typing import Any

import pytest

from kvplan_solver.cacheroute.inputs import Settings, fleet, key_rates
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.publish import table_keys
from kvplan_solver.cacheroute.table import (
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
    stored_hash_bits,
)
from kvplan_solver.errors import InvalidInput


def head(generation: int = 1, epoch: int = 1_700_000_000) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "generation": generation,
        "mode": "plan",
        "planDigest": "0" * 64,
        "hash": {"name": "blake2b-64-v1", "fingerprint": "00112233445566aa"},
        "classes": [],
        "unmatched": "ColdTail",
        "grids": {},
        "routers": [],
        "slots": [],
    }


def sample(count: int, seed: int = 0, destinations: int = 30) -> TableKeys:
    g = random.Random(seed)
    homes = tuple(Home((f"tp2-{a}",), f"tp2-{b}") for a in range(destinations) for b in range(destinations) if a != b)
    return TableKeys(
        homes,
        [g.getrandbits(64) for _ in range(count)],
        [g.lognormvariate(0, 1.6) for _ in range(count)],
        [g.randrange(len(homes)) for _ in range(count)],
    )


def decode(encoded: EncodedTable, current: Table | None = None) -> Table:
    return read_table(read_index(encoded.index), {s.name: s.data for s in encoded.shards}, current)


@pytest.mark.parametrize(("count", "inline"), [(0, 4_000), (1, 4_000), (4_000, 4_000), (4_001, 4_000), (3, 0)])
def test_every_key_is_found_where_it_was_put_and_no_other(count: int, inline: int) -> None:
    keys = sample(count)
    encoded = encode_table("fleet", head(), keys, inline)
    table = decode(encoded)
    assert bool(encoded.shards) == (count > inline)
    assert len(table) == count
    for hash_, home in zip(keys.hashes, keys.home_of, strict=True):
        assert table.lookup(hash_) == keys.homes[home]
    for stranger in sample(1_000, seed=1).hashes:
        assert table.lookup(stranger) is None


def test_large_table_is_split_by_prefix_into_shards_that_fit_a_config_map() -> None:
    keys = sample(215_000, seed=2)
    encoded = encode_table("fleet", head(), keys)
    assert len(encoded.shards) == 2
    assert all(len(shard.data) <= SHARD_BYTES_MAX for shard in encoded.shards)
    table = decode(encoded)
    assert len(table) == 215_000
    assert table.nbytes == 215_000 * 12
    for row in range(0, 215_000, 997):
        assert table.lookup(keys.hashes[row]) == keys.homes[keys.home_of[row]]


@pytest.mark.parametrize(("keys", "bits"), [(4_001, 40), (2**20, 40), (2**20 + 1, 48), (2**28 + 1, 56), (2**40, 64)])
def test_stored_bits_keep_false_matches_below_one_in_a_million(keys: int, bits: int) -> None:
    assert stored_hash_bits(keys) == bits


def test_colder_of_two_colliding_keys_is_dropped_and_named() -> None:
    homes = (Home(("a-0",), None), Home(("a-1",), None))
    same = 0xAAAAAAAAAA << 24
    keys = TableKeys(homes, [same | 1, same | 2, 5], [1.0, 2.0, 3.0], [0, 1, 0])
    encoded = encode_table("fleet", head(), keys, inline_keys_max=0)
    assert encoded.collided == (same | 1,)
    assert decode(encoded).lookup(same | 2) == homes[1]


def test_full_hashes_that_collide_keep_the_hotter_key_whatever_the_order() -> None:
    homes = (Home(("a-0",), None), Home(("a-1",), None))
    one = encode_table("fleet", head(), TableKeys(homes, [7, 7], [1.0, 2.0], [0, 1]))
    two = encode_table("fleet", head(), TableKeys(homes, [7, 7], [2.0, 1.0], [1, 0]))
    assert one == two
    assert decode(one).lookup(7) == homes[1]


def test_top_keys_are_listed_hottest_first() -> None:
    keys = sample(200)
    top = read_index(encode_table("fleet", head(), keys).index).document["top"]
    hottest = sorted(range(200), key=lambda row: -keys.rates[row])[:50]
    assert [line["hash"] for line in top] == [f"{keys.hashes[row]:016x}" for row in hottest]


@pytest.mark.parametrize("inline", [4_000, 0])
def test_bytes_do_not_depend_on_the_order_of_rows_or_homes(inline: int) -> None:
    keys = sample(500)
    rows = random.Random(3).sample(range(500), 500)
    backwards = TableKeys(
        keys.homes[::-1],
        array("Q", [keys.hashes[row] for row in rows]),
        array("d", [keys.rates[row] for row in rows]),
        [len(keys.homes) - 1 - keys.home_of[row] for row in rows],
    )
    assert encode_table("fleet", head(), keys, inline) == encode_table("fleet", head(), backwards, inline)


def test_shards_do_not_change_with_the_generation_or_the_slot_map() -> None:
    keys = sample(500)
    slots = [{"slot": "tp2-0", "configuration": "tp2", "budgetTokens": 1, "weightMilli": 1, "state": "serving"}]
    first = encode_table("fleet", head(1), keys, 0)
    second = encode_table("fleet", {**head(2), "slots": slots}, keys, 0)
    assert first.shards == second.shards
    assert first.index != second.index


PROGRAM = """
import hashlib, numpy as np
from kvplan_solver.cacheroute.inputs import Settings, fleet, key_rates
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.publish import table_keys
from kvplan_solver.cacheroute.table import encode_table
g = np.random.default_rng(0)
rates = key_rates(g.integers(0, 2**64, 6000, dtype=np.uint64), g.lognormal(0, 1.6, 6000))
plan = plan_keys(rates, fleet([f"tp2-{n}" for n in range(9)], warm_slots=900), Settings(q_cap=30.0))
head = {"epoch": 1, "generation": 1, "mode": "plan", "hash": {"name": "h", "fingerprint": "0" * 16},
        "classes": [], "unmatched": "ColdTail", "grids": {}, "routers": [], "slots": []}
encoded = encode_table("fleet", head, table_keys(plan))
print(hashlib.sha256(encoded.index.encode() + b"".join(s.data for s in encoded.shards)).hexdigest())
"""


def test_bytes_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(digests) == 1


def test_reader_needs_the_standard_library_alone() -> None:
    program = (
        "import sys, kvplan_solver.cacheroute.table, kvplan_solver.cacheroute.keys\n"
        "names = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(names - set(sys.stdlib_module_names) - {'kvplan_solver', '__main__'}))\n"
    )
    path = f"import sys; sys.path[:0] = {sys.path}\n"
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", path + program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


def test_plan_survives_the_wire() -> None:
    g = random.Random(5)
    rates = key_rates([g.getrandbits(64) for _ in range(5_000)], [g.lognormvariate(0, 1.6) for _ in range(5_000)])
    plan = plan_keys(rates, fleet([f"tp2-{n}" for n in range(9)], warm_slots=600), Settings(q_cap=40.0))
    table = decode(encode_table("fleet", head(), table_keys(plan)))
    assert len(table) == len(plan.keys)
    for row, key in enumerate(plan.keys.tolist()):
        backup = plan.backups[row]
        home = table.lookup(key)
        assert home == (plan.home(key), plan.destinations[backup] if backup >= 0 else None)


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ((1_700_000_000, 4), RefusalReason.STALE),
        ((1_600_000_000, 9), RefusalReason.STALE),
        ((1_700_000_000, 5), RefusalReason.CONFLICTING_GENERATION),
    ],
)
def test_older_or_contradicting_table_never_replaces_the_one_in_force(
    order: tuple[int, int], reason: RefusalReason
) -> None:
    current = decode(encode_table("fleet", head(5), sample(10)))
    with pytest.raises(TableRefused) as refusal:
        decode(encode_table("fleet", head(order[1], order[0]), sample(11)), current)
    assert refusal.value.reason is reason


@pytest.mark.parametrize("order", [(1_700_000_000, 6), (1_800_000_000, 1)])
def test_newer_generation_or_recreated_index_replaces_the_one_in_force(order: tuple[int, int]) -> None:
    current = decode(encode_table("fleet", head(5), sample(10)))
    assert decode(encode_table("fleet", head(order[1], order[0]), sample(11)), current).order == order


def test_same_table_again_is_accepted() -> None:
    encoded = encode_table("fleet", head(5), sample(10))
    assert decode(encoded, decode(encoded)).order == (1_700_000_000, 5)


def test_table_hashed_under_another_secret_is_refused() -> None:
    index = read_index(encode_table("fleet", head(), sample(3)).index)
    assert len(read_table(index, {}, fingerprint="00112233445566aa")) == 3
    with pytest.raises(TableRefused) as refusal:
        read_table(index, {}, fingerprint="ff112233445566aa")
    assert refusal.value.reason is RefusalReason.FOREIGN_HASH


def test_table_without_a_key_is_accepted_whatever_it_was_hashed_under() -> None:
    index = read_index(encode_table("fleet", head(), sample(0)).index)
    assert len(read_table(index, {}, fingerprint="ff112233445566aa")) == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"mode": "Plan"}, "mode"),
        ({"epoch": -1}, "epoch"),
        ({"epoch": 1.5}, "epoch"),
        ({"generation": True}, "generation"),
        ({"unmatched": None}, "unmatched"),
        ({"surprise": 1}, "surprise"),
        ({"planDigest": "xyz"}, "planDigest"),
        ({"grids": {"promptTokens": []}}, "promptTokens"),
        ({"slots": [{"slot": "tp2"}]}, "slots"),
        ({"classes": "all"}, "classes"),
    ],
)
def test_head_that_breaks_the_schema_is_refused_by_field(change: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        encode_table("fleet", {**head(), **change}, sample(1))


def test_index_that_outgrows_a_config_map_is_refused() -> None:
    routers = [{"identity": f"{n:04d}" * 60, "shareMilli": 1} for n in range(1_024)]
    slots = [
        {"slot": f"tp2-{n}", "configuration": "tp2", "budgetTokens": 1, "weightMilli": 1, "state": "serving",
         "podName": "p" * 253, "address": "a" * 250}
        for n in range(2_000)
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match="ConfigMap"):
        encode_table("fleet", {**head(), "routers": routers, "slots": slots}, sample(1))


def test_few_keys_with_very_many_destinations_go_into_shards_instead_of_the_index() -> None:
    names = [f"configuration-with-a-long-name-{n}" for n in range(64)]
    homes = tuple(Home(tuple(sorted(names[n % 32 : n % 32 + 1 + n // 32])), None) for n in range(32 * 32))
    keys = TableKeys(homes, [key << 44 for key in range(1, 1025)], [1.0] * 1024, list(range(1024)))
    encoded = encode_table("fleet", head(), keys)
    assert encoded.shards
    assert decode(encoded).lookup(1024 << 44) == homes[1023]


PLAIN = Home(("a-0",), "a-1")
ROWS: dict[str, tuple[TableKeys, str]] = {
    "destinations out of order": (TableKeys((Home(("a-1", "a-0"), None),), [1], [1.0], [0]), "ascending, each once"),
    "a destination twice": (TableKeys((Home(("a-0", "a-0"), None),), [1], [1.0], [0]), "ascending, each once"),
    "a backup among the destinations": (TableKeys((Home(("a-0",), "a-0"),), [1], [1.0], [0]), "must not be a dest"),
    "no destination": (TableKeys((Home((), "a-0"),), [1], [1.0], [0]), "needs a destination"),
    "a destination that is no slot": (TableKeys((Home(("a b-0",), None),), [1], [1.0], [0]), "name slots like"),
    "a backup that is no slot": (TableKeys((Home(("a-0",), ""),), [1], [1.0], [0]), "name slots like"),
    "a home of -1": (TableKeys((PLAIN,), [1], [1.0], [-1]), "home_of is -1: there are 1 homes"),
    "a home that is not there": (TableKeys((PLAIN,), [1, 2], [1.0, 1.0], [0, 1]), "home_of is 1: there are 1 homes"),
    "no homes at all": (TableKeys((), [1], [1.0], [0]), "there are 0 homes"),
    "a rate that is no number": (TableKeys((PLAIN,), [1], [float("nan")], [0]), "rates is nan"),
    "an endless rate": (TableKeys((PLAIN,), [1], [float("inf")], [0]), "rates is inf"),
    "a negative rate": (TableKeys((PLAIN,), [1], [-1.0], [0]), "rates is -1.0"),
    "a negative hash": (TableKeys((PLAIN,), [-1], [1.0], [0]), "hashes is -1"),
    "a hash of 65 bits": (TableKeys((PLAIN,), [1 << 64], [1.0], [0]), "unsigned integers of 64 bits"),
}


@pytest.mark.parametrize("inline", [4_000, 0], ids=["inline", "shards"])
@pytest.mark.parametrize(("keys", "named"), ROWS.values(), ids=ROWS.keys())
def test_rows_that_no_reader_would_take_are_refused_in_either_form(keys: TableKeys, named: str, inline: int) -> None:
    with pytest.raises(InvalidInput, match=named):
        encode_table("fleet", head(), keys, inline)


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one row per key"):
        encode_table("fleet", head(), TableKeys((Home(("a-0",), None),), [1, 2], [1.0], [0, 0]))
