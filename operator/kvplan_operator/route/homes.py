"""The key plan in force, read back from the published table: a new leader goes on without memory.

Inputs: a decoded table, how many hash bits it stores, the keys as measured now. Output: a ``KeyPlan`` that the next
one is compared with and planned next to. The table holds no rates; they are 0 here, as both uses take new ones. Pure.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.cacheroute.counts import DroppedRates
from kvplan_solver.cacheroute.inputs import Ints, Keys, key_rates
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome, Report
from kvplan_solver.cacheroute.table import Home, Table
from kvplan_solver.cacheroute.table.values import KEY_BITS, NO_BACKUP


def key_plan_in_force(table: Table, hash_bits: int, measured: Keys) -> KeyPlan | None:
    """The plan behind a table; None where it holds no key.

    Args:
        table: decoded.
        hash_bits: leading bits of each key that it stores.
        measured: hashes of the keys as measured now, any order: they complete the stored bits.
    """
    if not len(table):
        return None
    stored, home_of = (np.array(column, dtype=np.uint64) for column in table.columns)
    keys = _completed(stored, hash_bits, measured)
    destinations = tuple(sorted(slots_of_homes(table.homes)))
    number = {slot: r for r, slot in enumerate(destinations)}
    sizes, members, backups = _homes(table.homes, number)
    chosen = home_of.astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes[chosen])))
    nothing = np.zeros(len(destinations))
    return KeyPlan(
        outcome=Outcome.PLANNED,
        destinations=destinations,
        weights=np.ones(len(destinations)),
        rates=key_rates(keys, 0.0 * keys.astype(np.float64)),
        offsets=offsets,
        members=_gathered(members, sizes, chosen, offsets),
        backups=backups[chosen],
        initial_load=nothing,
        loads=nothing,
        report=Report(DroppedRates(0, 0, 0, 0)),
    )


def slots_of_homes(homes: Sequence[Home]) -> frozenset[str]:
    """Every slot that some home names, backups too."""
    named = {slot for home in homes for slot in home.destinations}
    return frozenset(named | {home.backup for home in homes if home.backup is not None})


def _completed(stored: Keys, hash_bits: int, measured: Keys) -> Keys:
    """64-bit keys for the stored bits: the measured key that has them, else zeros behind them; ascending."""
    shift = np.uint64(KEY_BITS - hash_bits)
    bare = stored << shift
    known = np.sort(measured)
    if not known.size:
        return np.asarray(bare)
    at = np.minimum(np.searchsorted(known, bare), known.size - 1)
    return np.asarray(np.where(known[at] >> shift == stored, known[at], bare))


def _homes(homes: Sequence[Home], number: dict[str, int]) -> tuple[Ints, Ints, Ints]:
    """Size of each home, all members one after the other, and backups."""
    sizes = np.array([len(home.destinations) for home in homes], dtype=np.int64)
    members = np.array([number[slot] for home in homes for slot in home.destinations], dtype=np.int64)
    backups = [NO_BACKUP if home.backup is None else number[home.backup] for home in homes]
    return sizes, members, np.array(backups, dtype=np.int64)


def _gathered(members: Ints, sizes: Ints, chosen: Ints, offsets: Ints) -> NDArray[np.int64]:
    """The members of each chosen home, one after the other."""
    starts = np.cumsum(sizes) - sizes
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes[chosen])
    return np.asarray(members[np.repeat(starts[chosen], sizes[chosen]) + within])
