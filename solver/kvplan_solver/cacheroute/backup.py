"""A planned backup for every key with one destination: where it goes if that destination is lost.

In: the placement and its loads. Out: one destination per single-replica key, or -1. For each destination its
single-replica keys, hottest first, go by LPT onto the survivors at their planned loads, so that after a
failure the load stays even without a replan. Source: 03-cacheroute §3.
"""

from itertools import pairwise

import numpy as np

from kvplan_solver.cacheroute.inputs import Bools, Fleet, Floats, Ints
from kvplan_solver.cacheroute.placement import Jobs, place
from kvplan_solver.cacheroute.table.values import NO_BACKUP


def plan_backups(jobs: Jobs, members: Ints, loads: Floats, fleet: Fleet) -> Ints:
    """Choose the backups.

    Args:
        jobs: the placed keys, in decreasing order of rate.
        members: the destination of each job's first replica, one per job; -1 where not placed.
        loads: planned load, requests per second, length R.
        fleet: the destinations.

    Returns:
        Backup destination per job; -1 for keys with several replicas or without another eligible destination.
    """
    backups = np.full(jobs.rates.size, NO_BACKUP, dtype=np.int64)
    lone = np.flatnonzero((jobs.replicas == 1) & (members >= 0))
    homes = members[lone].astype(np.uint16)  # 16 bits sort in linear time
    by_home = lone[np.argsort(homes, kind="stable")]
    bounds = np.concatenate(([0], np.cumsum(np.bincount(homes, minlength=len(fleet.destinations)))))
    for lost, (start, end) in enumerate(pairwise(bounds.tolist())):
        rows = by_home[start:end]
        if rows.size:
            backups[rows] = _without(lost, rows, jobs, loads, fleet)
    return backups


def _without(lost: int, rows: Ints, jobs: Jobs, loads: Floats, fleet: Fleet) -> Ints:
    survivors = fleet.without(lost)
    anywhere: Bools = np.any(survivors.eligible, axis=1)
    served = anywhere[jobs.class_of[rows]]
    found = np.full(rows.size, NO_BACKUP, dtype=np.int64)
    movable = rows[served]
    moved = Jobs(jobs.rates[movable], np.ones(movable.size, dtype=np.int64), jobs.class_of[movable])
    found[served] = place(moved, survivors, loads).members
    return found
