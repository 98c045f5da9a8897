"""Which rates can be planned on, and how many replicas each key needs (equation (2) of CacheRoute).

In: :class:`KeyRates` as measured. Out: the usable rows, a count of every dropped row by cause, and k_b.
A bad row never stops the planning and is never dropped silently. Source: 03-cacheroute §1 and §6.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.cacheroute.inputs import Bools, Fleet, Floats, Ints, KeyRates

CEIL_GUARD = 1e-9
"""Relative slack of the ceiling, so that an exact multiple of q_cap does not gain a replica by rounding."""

UNRELIABLE_ERROR_SHARE = 0.5
"""A key whose error exceeds this share of its rate is not planned."""

REQUESTS_PER_SLOT_MIN = 70
"""Requests a measurement window must hold per warm slot for its ranking to mean something."""


@dataclass(frozen=True)
class DroppedRates:
    """Rows that were not planned on, by cause."""

    invalid: int
    """NaN, infinite or negative."""
    idle: int
    """Rate 0."""
    unreliable: int
    """Measurement error above half of the rate."""
    ineligible: int
    """No destination serves the key's class."""


def usable_rates(measured: KeyRates, fleet: Fleet) -> tuple[KeyRates, DroppedRates]:
    """The rows that can be planned on, and how many were dropped and why."""
    valid = np.isfinite(measured.rates) & (measured.rates >= 0)
    arriving = positive(measured)
    reliable = arriving & (measured.errors <= UNRELIABLE_ERROR_SHARE * np.where(arriving, measured.rates, 0.0))
    served = reliable & _served(measured.class_of, fleet)
    dropped = DroppedRates(
        invalid=int(np.count_nonzero(~valid)),
        idle=int(np.count_nonzero(valid & ~arriving)),
        unreliable=int(np.count_nonzero(arriving & ~reliable)),
        ineligible=int(np.count_nonzero(reliable & ~served)),
    )
    everything = served.all()
    return (measured if everything else measured.rows(np.flatnonzero(served))), dropped


def _served(class_of: Ints, fleet: Fleet) -> Bools:
    known = (class_of >= 0) & (class_of < len(fleet.shares))
    anywhere: Bools = np.any(fleet.eligible, axis=1)
    return np.asarray(known & anywhere[np.where(known, class_of, 0)])


def positive(measured: KeyRates) -> Bools:
    """Rows whose rate is a valid number above 0."""
    return np.asarray(np.isfinite(measured.rates) & (measured.rates > 0))


def rate_by_class(measured: KeyRates, classes: int) -> Floats:
    """Σ of the valid rates of each class's keys, requests per second."""
    known = positive(measured) & (measured.class_of >= 0) & (measured.class_of < classes)
    rows = np.flatnonzero(known)
    total = np.bincount(measured.class_of[rows], weights=measured.rates[rows], minlength=classes)
    return total.astype(np.float64)


def guarded_ceil(x: Floats) -> Ints:
    """ceil(x − 1e-9·max(1, x))."""
    return np.ceil(x - CEIL_GUARD * np.maximum(1.0, x)).astype(np.int64)


def replica_counts(rates: KeyRates, q_cap: float, fleet: Fleet) -> tuple[Ints, Ints]:
    """k_b = max(1, ceil(λ_b/q_cap)), capped at the destinations that serve the key's class.

    Returns:
        k_b per row, and the rows that needed more than there are (oversized).
    """
    wanted = np.maximum(1, guarded_ceil(rates.rates / q_cap))
    available = fleet.eligible.sum(axis=1)[rates.class_of]
    return np.minimum(wanted, available), np.flatnonzero(wanted > available)
