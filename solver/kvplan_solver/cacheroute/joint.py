"""The fleet as the key planner sees it, derived from a BCD-DRO result: π, planned loads and cold loads.

In: slots with their configuration, π, class rates, warm slots per configuration. Out: a :class:`Fleet` whose
keys follow π: eligible only where π_ik > 0, planned load c_r = Σ_i λ_i·π_ik/z_k, and as initial load what no
listed key explains. Source: 03-cacheroute §1, "joint with BCD-DRO".
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kvplan_solver.cacheroute.counts import rate_by_class
from kvplan_solver.cacheroute.inputs import Fleet, KeyRates, fleet, require


def joint_fleet(
    slots: Sequence[tuple[str, int]],
    routing: ArrayLike,
    class_rates: ArrayLike,
    warm_slots: Sequence[int],
    measured: KeyRates,
) -> Fleet:
    """Derive the destinations from a plan.

    Args:
        slots: (slot name, configuration number) of every serving group.
        routing: π, shape (I, K).
        class_rates: λ_i, requests per second, length I.
        warm_slots: W of one group, per configuration, length K, see ``capacity.warm_slots``.
        measured: the listed keys; the part of λ_i they do not explain is cold.

    Raises:
        InvalidInput: shapes that do not agree.
    """
    pi, rates = np.asarray(routing, dtype=np.float64), np.asarray(class_rates, dtype=np.float64)
    require(pi.shape == (rates.size, len(warm_slots)), "joint fleet", "routing", pi.shape,
            f"use shape ({rates.size}, {len(warm_slots)})")  # fmt: skip
    of_slot = np.array([configuration for _, configuration in slots], dtype=np.int64)
    groups = np.bincount(of_slot, minlength=len(warm_slots))
    shares = pi[:, of_slot] / groups[of_slot]
    unlisted = np.maximum(0.0, rates - rate_by_class(measured, rates.size))
    return fleet(
        [name for name, _ in slots],
        warm_slots=[warm_slots[k] for k in of_slot],
        weights=rates @ shares,
        cold_load=unlisted @ shares,
        shares=shares,
    )
