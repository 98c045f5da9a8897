"""Which keys get a guaranteed place: rank, floor, tenant cap, and the budget of slots or bytes.

In: usable rates, k_b, the fleet, who was admitted before. Out: admitted rows and the count of the others by
cause. The order of the caps is fixed and documented: floor, then each tenant's cap, then the slots of each
class, then the fleet's. Source: equation (3) of CacheRoute; 03-cacheroute §1–3.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.cacheroute.inputs import Admission, Bools, Fleet, Floats, Ints, KeyRates, Keys, Settings

_NONE: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Admitted:
    """The admitted rows, and why others are not among them.

    Attributes:
        rows: admitted rows of the usable rates, in decreasing rank.
        spare: with ``Bytes``, the rows beyond the fleet's bytes, in decreasing rank: placing leaves gaps
            on single destinations that some of them fill.
        below_floor: keys too slow to stay warm.
        tenant_capped: keys beyond their tenant's share.
        skipped: keys that did not fit the budget.
    """

    rows: Ints
    spare: Ints
    below_floor: int
    tenant_capped: int
    skipped: int


def admit(rates: KeyRates, replicas: Ints, fleet: Fleet, settings: Settings, before: Keys) -> Admitted:
    """Choose the keys that get a guaranteed place.

    Args:
        rates: usable rates.
        replicas: k_b per row.
        fleet: the destinations.
        settings: admission mode, floor, hysteresis and tenant cap.
        before: keys admitted by the table in force, ascending.
    """
    bytes_bind = settings.admission is Admission.BYTES
    warm = above_floor(rates.rates, settings.eviction_window_seconds)
    order = ranked(rank_value(rates, settings, before), rates.keys, np.flatnonzero(warm))
    cost = _cost(rates, replicas, settings.admission)[order]
    budget = _budgets(fleet, settings.admission)
    within_cap = _within_tenant_cap(rates.tenant_of[order], cost, settings.tenant_share * budget.sum())
    order, cost = order[within_cap], cost[within_cap]
    kept = _within_class_budget(rates.class_of[order], cost, fleet, budget)
    kept[kept] = greedy_fit(cost[kept], float(budget.sum()))
    return Admitted(
        rows=order[kept],
        spare=order[~kept] if bytes_bind else _NONE,
        below_floor=int(np.count_nonzero(~warm)),
        tenant_capped=int(np.count_nonzero(~within_cap)),
        skipped=0 if bytes_bind else int(np.count_nonzero(~kept)),
    )


def above_floor(rates: Floats, eviction_window_seconds: float | None) -> Bools:
    """λ_b × eviction window ≥ 1: a slower key finds its prefix evicted on every visit."""
    if eviction_window_seconds is None:
        return np.ones(rates.size, dtype=np.bool_)
    return np.asarray(rates * eviction_window_seconds >= 1.0)


def rank_value(rates: KeyRates, settings: Settings, before: Keys) -> Floats:
    """The rank of each key: the sure part of its rate (× saved seconds for bytes), more if admitted before.

    Never rate divided by size: that would fill the caches with many small prefixes that save little.
    """
    sure = rates.rates - rates.errors
    value = sure * rates.saved_seconds if settings.admission is Admission.BYTES else sure
    if before.size and settings.hysteresis > 0:
        value = np.where(contains(before, rates.keys), value * (1 + settings.hysteresis), value)
    return value


def contains(ascending: Keys, keys: Keys) -> Bools:
    """Whether each key occurs in an ascending array."""
    if not ascending.size:
        return np.zeros(keys.size, dtype=np.bool_)
    at = np.minimum(np.searchsorted(ascending, keys), ascending.size - 1)
    return np.asarray(ascending[at] == keys)


def ranked(value: Floats, keys: Keys, rows: Ints) -> Ints:
    """Rows by decreasing value, equal values by ascending key: independent of the input order."""
    order = rows[np.argsort(-value[rows])]
    high = value[order]
    equal = high[1:] == high[:-1]
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    if tied.size:
        rivals = order[tied]
        order[tied] = rivals[np.lexsort((keys[rivals], -value[rivals]))]
    return order


def greedy_fit(cost: Floats, budget: float) -> Bools:
    """Take items in order while they fit; one that does not fit is skipped and the next one tried."""
    taken = np.zeros(cost.size, dtype=np.bool_)
    left = budget
    candidates = np.flatnonzero(cost <= left)
    while candidates.size:
        total = np.cumsum(cost[candidates])
        fitting = int(np.searchsorted(total, left, side="right"))
        taken[candidates[:fitting]] = True
        left -= float(total[fitting - 1])
        candidates = candidates[fitting + 1 :]
        candidates = candidates[cost[candidates] <= left]
    return taken


def _cost(rates: KeyRates, replicas: Ints, admission: Admission) -> Floats:
    per_replica = rates.size_bytes if admission is Admission.BYTES else 1.0
    return np.asarray(replicas * per_replica, dtype=np.float64)


def _budgets(fleet: Fleet, admission: Admission) -> Floats:
    room = fleet.byte_limits if admission is Admission.BYTES else fleet.warm_slots
    return np.asarray(np.where(fleet.weights > 0, room, 0), dtype=np.float64)


def _within_tenant_cap(tenant_of: Ints, cost: Floats, cap: float) -> Bools:
    """With several tenants, each one's keys in rank order up to its cap; a single tenant has no rival."""
    within = np.ones(cost.size, dtype=np.bool_)
    tenants, number = np.unique(tenant_of, return_inverse=True)
    demand = np.bincount(number, weights=cost, minlength=tenants.size)
    for tenant in np.flatnonzero(demand > cap) if tenants.size > 1 else ():
        rows = np.flatnonzero(number == tenant)
        within[rows] = greedy_fit(cost[rows], cap)
    return within


def _within_class_budget(class_of: Ints, cost: Floats, fleet: Fleet, budget: Floats) -> Bools:
    """Each class's keys up to what the destinations that serve it can hold."""
    within = np.ones(cost.size, dtype=np.bool_)
    for number, eligible in enumerate(fleet.eligible):
        if not eligible.all():
            rows = np.flatnonzero(class_of == number)
            within[rows] = greedy_fit(cost[rows], float(budget[eligible].sum()))
    return within
