"""The planned keys as a frozen value: homes, backups, loads, and a report of what is not in the plan.

Made by ``plan`` and ``replan``, read by ``publish``, ``install`` and ``fairness``. Ascending by key, equal
for equal inputs whatever their order. Must not compute anything but look-ups.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kvplan_solver.cacheroute.counts import REQUESTS_PER_SLOT_MIN, DroppedRates
from kvplan_solver.cacheroute.inputs import Floats, Ints, KeyRates, Keys


class Outcome(StrEnum):
    """Whether there is something to install; everything but Planned keeps the table in force."""

    PLANNED = "Planned"
    RATES_UNAVAILABLE = "RatesUnavailable"
    """No valid positive rate at all."""
    NO_ROOM = "NoRoom"
    """No destination has room for a warm prefix: affinity is off."""
    NOTHING_ADMITTED = "NothingAdmitted"
    """Every key is too slow to stay warm, unreliable, or too large."""


@dataclass(frozen=True)
class Report:
    """What became of the keys that are not in the plan, and how full it is. Rates in requests per second.

    Attributes:
        dropped: rows not planned on, by cause.
        below_floor: keys too slow to stay warm.
        tenant_capped: keys beyond their tenant's share of the warm slots.
        skipped: keys that did not fit the slots or bytes of the fleet.
        unplaced: keys whose prefix no single destination had bytes left for.
        oversized: admitted keys that needed more destinations than there are, ascending.
        admitted_rate: Σ λ_b of the admitted keys.
        cold_rate: the load that stays unplanned.
        slots_used: Σ k_b of the admitted keys.
        slots: C = Σ W.
        requests_per_slot: requests the measurement window held per warm slot; None where unknown.
    """

    dropped: DroppedRates
    below_floor: int = 0
    tenant_capped: int = 0
    skipped: int = 0
    unplaced: int = 0
    oversized: tuple[int, ...] = ()
    admitted_rate: float = 0.0
    cold_rate: float = 0.0
    slots_used: int = 0
    slots: int = 0
    requests_per_slot: float | None = None

    @property
    def window_adequate(self) -> bool | None:
        """Whether the window held ≥ 70 requests per slot; None where unknown."""
        held = self.requests_per_slot
        return None if held is None else held >= REQUESTS_PER_SLOT_MIN


@dataclass(frozen=True, eq=False)
class KeyPlan:
    """Admitted keys and their homes, ascending by key.

    Attributes:
        outcome: whether this may be installed.
        destinations: slot names, ascending; the numbers below index it.
        weights: c_r, planned load or relative capacity; 0 takes no key.
        rates: the admitted rows, ascending by key.
        offsets: where each key's destinations start in ``members``; one longer than the keys.
        members: destinations, ascending within a key.
        backups: planned backup of each key with one destination, else -1.
        initial_load: cold load of each destination, requests per second.
        loads: planned load of each destination, requests per second.
        report: everything that is not in the plan.
    """

    outcome: Outcome
    destinations: tuple[str, ...]
    weights: Floats
    rates: KeyRates
    offsets: Ints
    members: Ints
    backups: Ints
    initial_load: Floats
    loads: Floats
    report: Report

    @property
    def keys(self) -> Keys:
        """The admitted keys, ascending."""
        return self.rates.keys

    @property
    def replicas(self) -> Ints:
        """k_b of each key."""
        return np.diff(self.offsets)

    @property
    def shares(self) -> Floats:
        """λ_b/k_b of each key, requests per second."""
        return self.rates.rates / self.replicas

    @property
    def largest_load(self) -> float:
        """Largest L_r/c_r over the destinations that take keys; 0 if there is none."""
        return largest(self.loads, self.weights)

    def home(self, key: int) -> tuple[str, ...]:
        """Destinations of one key; empty for the cold tail."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        if at == len(self.keys) or int(self.keys[at]) != key:
            return ()
        return tuple(self.destinations[r] for r in self.members[self.offsets[at] : self.offsets[at + 1]])


def largest(loads: Floats, weights: Floats) -> float:
    """Largest load per weight over the destinations of positive weight; 0 if there is none."""
    usable = weights > 0
    return float((loads[usable] / weights[usable]).max(initial=0.0))
