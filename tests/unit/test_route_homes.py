"""The key plan in force, read back from what is published."""

import numpy as np
import pytest

from kvplan_operator.route.homes import key_plan_in_force
from kvplan_solver.cacheroute.inputs import Settings, fleet, key_rates
from kvplan_solver.cacheroute.key_plan import KeyPlan
from kvplan_solver.cacheroute.keys import HASH_NAME
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.publish import table_keys
from kvplan_solver.cacheroute.replan import moved_pairs, replan_keys
from kvplan_solver.cacheroute.table import Table, encode_table, read_index, read_table
from tests.routing import FINGERPRINT, hashed

SLOTS = [f"tp1-{n}" for n in range(5)]
DESTINATIONS = fleet(SLOTS, warm_slots=400)
HEAD = {
    "epoch": 1, "generation": 1, "mode": "plan", "hash": {"name": HASH_NAME, "fingerprint": FINGERPRINT},
    "classes": [], "unmatched": "ColdTail", "grids": {}, "routers": [], "slots": [],
}  # fmt: skip


def planned(count: int = 300) -> KeyPlan:
    """Falling rates: the hottest keys have several homes."""
    rates = key_rates([hashed(n) for n in range(count)], [40.0 / (n + 1) for n in range(count)])
    return plan_keys(rates, DESTINATIONS, Settings(q_cap=10.0))


def published(plan: KeyPlan, inline_keys_max: int) -> tuple[Table, int]:
    """The table and the hash bits it stores."""
    encoded = encode_table("demo", HEAD, table_keys(plan), inline_keys_max)
    index = read_index(encoded.index)
    table = read_table(index, {shard.name: shard.data for shard in encoded.shards})
    return table, int(index.document["hashBits"])


@pytest.mark.parametrize("inline", [4_000, 0], ids=["inline", "in shards, 40 bits a key"])
def test_keys_homes_and_backups_come_back(inline: int) -> None:
    plan = planned()
    assert plan.replicas.max() > 1
    assert (plan.backups >= 0).any()
    table, bits = published(plan, inline)
    back = key_plan_in_force(table, bits, plan.keys)
    assert back is not None
    assert back.destinations == plan.destinations
    for column in ("keys", "offsets", "members", "backups"):
        assert np.array_equal(getattr(back, column), getattr(plan, column)), column


def test_keys_that_are_no_longer_measured_keep_their_place_in_order() -> None:
    plan = planned()
    table, bits = published(plan, 0)
    back = key_plan_in_force(table, bits, plan.keys[::2])
    assert back is not None
    assert np.array_equal(back.keys[::2], plan.keys[::2])
    assert np.array_equal(back.keys >> np.uint64(24), plan.keys >> np.uint64(24))
    assert np.array_equal(back.members, plan.members)


def test_a_replan_next_to_it_moves_as_little_as_next_to_the_original() -> None:
    plan = planned()
    table, bits = published(plan, 0)
    back = key_plan_in_force(table, bits, plan.keys)
    assert back is not None
    noisy = key_rates(plan.keys, plan.rates.rates * np.linspace(0.95, 1.05, len(plan.keys)))
    first, second = (replan_keys(noisy, DESTINATIONS, Settings(q_cap=10.0), before) for before in (plan, back))
    assert np.array_equal(first.members, second.members)
    assert moved_pairs(back, second) == moved_pairs(plan, first)


def test_a_table_without_keys_is_no_plan() -> None:
    rates = key_rates([hashed(1)], [0.0])
    table, bits = published(plan_keys(rates, DESTINATIONS, Settings(q_cap=1.0)), 4_000)
    assert key_plan_in_force(table, bits, rates.keys) is None
