"""A new plan after drift that leaves almost every key where its cache is warm.

In: new rates, the fleet as it is now, the plan in force. Out: a :class:`KeyPlan` whose largest relative load
is at most U = (1+ε)·(that of a fresh LPT), with few moved pairs. Keeps every valid pair, places the missing
(planned backup first), moves and swaps, then re-places the m hottest and m coldest destinations with m
doubling; m = R is the fresh LPT itself, so the bound holds while no key lacks a place.

Under ``Admission.BYTES`` it can be missed by a little (1 % seen): where the limits are tight, the kept places
can leave a key without one that a fresh LPT would place, and its traffic then goes cold over the destinations
of its class, which the bound does not count. Source: 03-cacheroute §2.
"""

import numpy as np

from kvplan_solver.cacheroute.admission import contains
from kvplan_solver.cacheroute.inputs import Bools, Fleet, Ints, KeyRates, Settings
from kvplan_solver.cacheroute.key_plan import KeyPlan, largest
from kvplan_solver.cacheroute.placement import Jobs, place
from kvplan_solver.cacheroute.plan import Demand, finish, loads_of, plan_keys, prepare
from kvplan_solver.cacheroute.repair import Layout, layout_of, raise_new, relieve_all
from kvplan_solver.cacheroute.table.values import NO_BACKUP

HEADROOM_SHARE = 0.5
"""A replan may use at most this part of the headroom up to the knee for keeping keys in place."""


def replan_keys(measured: KeyRates, fleet: Fleet, settings: Settings, before: KeyPlan) -> KeyPlan:
    """Plan again, keeping places.

    Args:
        measured: rates as measured, bad ones included.
        fleet: the destinations now; they may differ from those of ``before``.
        settings: how to plan; ``epsilon`` and ``knee`` bound the slack.
        before: the plan in force.
    """
    if not len(before.keys):
        return plan_keys(measured, fleet, settings)
    demand = prepare(measured, fleet, settings, before)
    if isinstance(demand, KeyPlan):
        return demand
    fresh = place(demand.jobs, fleet, demand.initial_load)
    members = _kept_members(demand, fleet, settings, before, fresh.members)
    return finish(demand, fleet, members, settings.backups)


def shrunk_epsilon(epsilon: float, largest_load: float, knee: float | None) -> float:
    """ε, reduced to at most half of the headroom between the largest load and the knee."""
    if knee is None:
        return epsilon
    headroom = knee / largest_load - 1.0 if largest_load > 0 else float("inf")
    return max(0.0, min(epsilon, HEADROOM_SHARE * headroom))


def moved_pairs(before: KeyPlan, after: KeyPlan) -> tuple[int, int]:
    """How many pairs of ``after`` its keys did not have in ``before``, and how many pairs there are in all.

    Keys that ``before`` did not hold count as neither.
    """
    known = contains(before.keys, after.keys)
    moved = np.count_nonzero(known[pairs_to_warm(before, after)])
    return int(moved), int(after.replicas[known].sum())


def pairs_to_warm(before: KeyPlan, after: KeyPlan) -> Ints:
    """Row in ``after`` of every pair that ``before`` did not have, so once per cache to warm."""
    rows = np.repeat(np.arange(len(after.keys)), after.replicas)
    old_rows = np.searchsorted(after.keys, before.keys)
    held = np.repeat(contains(after.keys, before.keys), before.replicas)
    old = _packed(np.repeat(old_rows, before.replicas), renumbered(before, after.destinations)[before.members])
    return np.asarray(rows[~np.isin(_packed(rows, after.members), old[held])])


def _packed(rows: Ints, members: Ints) -> Ints:
    """One integer for each (row, destination); -1 as destination never equals a real one."""
    return np.asarray((rows << 20) + members)


def renumbered(before: KeyPlan, destinations: tuple[str, ...]) -> Ints:
    """Number of each destination of ``before`` in another list, -1 for one that is gone."""
    number = {name: r for r, name in enumerate(destinations)}
    return np.array([number.get(name, -1) for name in before.destinations], dtype=np.int64)


def _kept_members(demand: Demand, fleet: Fleet, settings: Settings, before: KeyPlan, fresh: Ints) -> Ints:
    fresh_loads = loads_of(fresh, demand.jobs, demand.initial_load)
    epsilon = shrunk_epsilon(settings.epsilon, float(fresh_loads.max()), settings.knee)
    bound = (1.0 + epsilon) * largest(fresh_loads, fleet.weights)
    kept, backups = _carry_over(demand, fleet, before)
    if np.count_nonzero((kept < 0) & (fresh >= 0)) > kept.size // 2:
        return fresh  # too little is left to keep
    layout = layout_of(demand.jobs, kept, backups, fleet, demand.initial_load)
    layout.place_missing(bound)
    if not relieve_all(layout, bound) and (demand.jobs.sizes is not None or not _replace_extremes(layout, bound)):
        return fresh
    raise_new(layout, _new_destinations(fleet, before), bound)
    return _ascending_members(layout, demand.jobs)


def _new_destinations(fleet: Fleet, before: KeyPlan) -> list[int]:
    known = set(before.destinations)
    return [r for r, name in enumerate(fleet.destinations) if name not in known and fleet.eligible[:, r].any()]


def _carry_over(demand: Demand, fleet: Fleet, before: KeyPlan) -> tuple[Ints, Ints]:
    """Places that are still valid (-1 for the others), and the old planned backup of each key."""
    jobs, keys = demand.jobs, demand.rates.keys
    at = np.minimum(np.searchsorted(before.keys, keys), len(before.keys) - 1)
    known = before.keys[at] == keys
    numbers = renumbered(before, fleet.destinations)
    members = np.full(int(jobs.replicas.sum()), -1, dtype=np.int64)
    starts = np.cumsum(jobs.replicas) - jobs.replicas
    plain = known & (jobs.replicas == 1) & (before.replicas[at] == 1)
    first = numbers[before.members[before.offsets[at]]]
    members[starts[plain]] = _if_eligible(first[plain], jobs.class_of[plain], fleet)
    for row in np.flatnonzero(known & ~plain).tolist():
        old = numbers[before.members[before.offsets[at[row]] : before.offsets[at[row] + 1]]]
        _carry_several(members, int(starts[row]), int(jobs.replicas[row]), old, fleet.eligible[jobs.class_of[row]])
    backups = np.where(known & (before.backups[at] >= 0), numbers[before.backups[at]], NO_BACKUP)
    return members, backups


def _if_eligible(members: Ints, class_of: Ints, fleet: Fleet) -> Ints:
    allowed = (members >= 0) & fleet.eligible[class_of, members]
    return np.asarray(np.where(allowed, members, -1))


def _carry_several(members: Ints, start: int, count: int, old: Ints, eligible: Bools) -> None:
    """Keep up to k_b of a replicated key's places; the lowest numbers stay when k_b shrinks."""
    valid = old[(old >= 0) & eligible[old]][:count]
    members[start : start + valid.size] = valid


def _replace_extremes(layout: Layout, bound: float) -> bool:
    """LPT over the m hottest and m coldest destinations, m = 1, 2, 4, …; False when m would reach R."""
    usable = [r for r, weight in enumerate(layout.weights) if weight > 0]
    m = 1
    while 2 * m < len(usable):
        by_load = sorted(usable, key=lambda r: (-layout.relative(r), r))
        chosen = by_load[:m] + by_load[-m:]
        _spread_again(layout, chosen)
        if layout.largest() <= bound or relieve_all(layout, bound):
            return True
        m *= 2
    return False


def _spread_again(layout: Layout, chosen: list[int]) -> None:
    """Take all pairs off the chosen destinations and place them there again, hottest first."""
    pairs = sorted((p for r in chosen for p in layout.held(r)), key=lambda p: (-layout.shares[p], p))
    for pair in pairs:
        layout.lift(pair)
    for pair in pairs:
        share = layout.shares[pair]
        choices = [r for r in layout.choices(pair) if r in chosen]
        layout.move(pair, min(choices, key=lambda r: (layout.relative(r, share), r)))


def _ascending_members(layout: Layout, jobs: Jobs) -> Ints:
    """Destinations ascending within each key; a key that lacks one place loses all."""
    members = np.array(layout.members, dtype=np.int64)
    for row in np.flatnonzero(jobs.replicas > 1).tolist():
        start, end = layout.offsets[row], layout.offsets[row + 1]
        places = np.sort(members[start:end])
        members[start:end] = places if places[0] >= 0 else -1
    return members
