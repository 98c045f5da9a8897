"""Plan keys from scratch: clean the rates, count replicas, admit, place by LPT, plan backups.

In: measured rates, the fleet, settings, the plan in force. Out: a :class:`KeyPlan`, equal for equal inputs
whatever their order. Must not read clocks or keep state. Source: Algorithm 1 of CacheRoute; 03-cacheroute §1.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.cacheroute.admission import admit, ranked
from kvplan_solver.cacheroute.backup import plan_backups
from kvplan_solver.cacheroute.counts import positive, rate_by_class, replica_counts, usable_rates
from kvplan_solver.cacheroute.inputs import Admission, Fleet, Floats, Ints, KeyRates, Keys, Settings
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome, Report
from kvplan_solver.cacheroute.placement import Jobs, place
from kvplan_solver.cacheroute.table.values import NO_BACKUP

_NO_KEYS: Keys = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Demand:
    """Admitted keys ready for placing, in decreasing order of rate (spare ones of ``Bytes`` last).

    Attributes:
        rates: the keys.
        jobs: the same as the placement takes them.
        arriving: Σ of the listed rates of each class, planned or not, requests per second.
        initial_load: L[r] if every admitted key finds a place, requests per second.
        report: what admission already knows.
    """

    rates: KeyRates
    jobs: Jobs
    arriving: Floats
    initial_load: Floats
    report: Report


def plan_keys(measured: KeyRates, fleet: Fleet, settings: Settings, before: KeyPlan | None = None) -> KeyPlan:
    """Plan all keys from scratch by LPT; ``before`` only lends its admitted keys the ranking bonus.

    Args:
        measured: rates as measured, bad ones included.
        fleet: the destinations.
        settings: how to plan.
        before: the plan in force.
    """
    demand = prepare(measured, fleet, settings, before)
    if isinstance(demand, KeyPlan):
        return demand
    members = place(demand.jobs, fleet, demand.initial_load).members
    return finish(demand, fleet, members, settings.backups)


def prepare(measured: KeyRates, fleet: Fleet, settings: Settings, before: KeyPlan | None) -> Demand | KeyPlan:
    """Everything up to placing; a :class:`KeyPlan` if there is nothing to place, with the reason."""
    usable, dropped = usable_rates(measured, fleet)
    replicas, oversized = replica_counts(usable, settings.q_cap, fleet)
    admitted = admit(usable, replicas, fleet, settings, before.keys if before else _NO_KEYS)
    rows = ranked(usable.rates, usable.keys, admitted.rows)
    outcome = _nothing_to_place(measured, rows, fleet, settings)
    if outcome is not None:
        rows = rows[:0]
    candidates = usable.rows(np.concatenate((rows, admitted.spare)))
    chosen = candidates.first(rows.size)
    arriving = rate_by_class(measured, len(fleet.shares))
    initial_load = _initial_load(arriving, chosen, fleet)
    report = Report(
        dropped=dropped,
        below_floor=admitted.below_floor,
        tenant_capped=admitted.tenant_capped,
        skipped=admitted.skipped,
        oversized=_oversized(usable, oversized, rows),
        admitted_rate=float(chosen.rates.sum()),
        cold_rate=float(initial_load.sum()),
        slots_used=int(replicas[rows].sum()),
        slots=_slots(fleet),
        requests_per_slot=_requests_per_slot(measured, fleet, settings),
    )
    if outcome is not None:
        return _empty(outcome, fleet, initial_load, report)
    counts = replicas[np.concatenate((rows, admitted.spare))]
    return Demand(candidates, _jobs(candidates, counts, settings), arriving, initial_load, report)


def _jobs(rates: KeyRates, replicas: Ints, settings: Settings) -> Jobs:
    sizes = rates.size_bytes if settings.admission is Admission.BYTES else None
    return Jobs(rates.rates, replicas, rates.class_of, sizes)


def _oversized(usable: KeyRates, oversized: Ints, admitted: Ints) -> tuple[int, ...]:
    """Admitted keys that wanted more destinations than there are; few or none in any real fleet."""
    if not oversized.size:
        return ()
    return tuple(sorted(usable.keys[np.intersect1d(oversized, admitted)].tolist()))


def _slots(fleet: Fleet) -> int:
    return int(fleet.warm_slots[fleet.weights > 0].sum())


def _requests_per_slot(measured: KeyRates, fleet: Fleet, settings: Settings) -> float | None:
    slots, seconds = _slots(fleet), settings.measurement_seconds
    if seconds is None or not slots:
        return None
    return float(measured.rates[positive(measured)].sum()) * seconds / slots


def _nothing_to_place(measured: KeyRates, rows: Ints, fleet: Fleet, settings: Settings) -> Outcome | None:
    room = fleet.byte_limits if settings.admission is Admission.BYTES else fleet.warm_slots
    if not positive(measured).any():
        return Outcome.RATES_UNAVAILABLE
    if not np.any(room[fleet.weights > 0]):
        return Outcome.NO_ROOM
    return None if rows.size else Outcome.NOTHING_ADMITTED


def _empty(outcome: Outcome, fleet: Fleet, initial_load: Floats, report: Report) -> KeyPlan:
    none = np.empty(0, dtype=np.int64)
    nothing = np.empty(0)
    rates = KeyRates(_NO_KEYS, nothing, nothing, none, none, nothing, nothing)
    offsets = np.zeros(1, dtype=np.int64)
    return KeyPlan(
        outcome=outcome,
        destinations=fleet.destinations,
        weights=fleet.weights,
        rates=rates,
        offsets=offsets,
        members=none,
        backups=none,
        initial_load=initial_load,
        loads=initial_load,
        report=report,
    )


def _initial_load(arriving: Floats, planned: KeyRates, fleet: Fleet) -> Floats:
    """L[r] before placing: the cold load, and the listed but unplanned rate spread over its class by π."""
    tail = np.maximum(0.0, arriving - rate_by_class(planned, len(fleet.shares)))
    spread = np.where(fleet.eligible, fleet.shares, 0.0)
    total = spread.sum(axis=1, keepdims=True)
    return np.asarray(fleet.cold_load + tail @ np.divide(spread, total, out=np.zeros_like(spread), where=total > 0))


def finish(demand: Demand, fleet: Fleet, members: Ints, with_backups: bool) -> KeyPlan:
    """Plan backups, drop keys without a place, and bring all columns into ascending order of key."""
    jobs = demand.jobs
    offsets = np.concatenate(([0], np.cumsum(jobs.replicas)))
    first = members[offsets[:-1]]
    placed = np.flatnonzero(first >= 0)
    order = placed[np.argsort(demand.rates.keys[placed])]
    replicas, rates = jobs.replicas[order], demand.rates.rows(order)
    initial_load = _initial_load(demand.arriving, rates, fleet)
    loads = loads_of(members, jobs, initial_load)
    backups = plan_backups(jobs, first, loads, fleet) if with_backups else np.full(first.size, NO_BACKUP)
    return KeyPlan(
        outcome=Outcome.PLANNED if order.size else Outcome.NOTHING_ADMITTED,
        destinations=fleet.destinations,
        weights=fleet.weights,
        rates=rates,
        offsets=np.concatenate(([0], np.cumsum(replicas))),
        members=members[_pair_rows(offsets[order], replicas)],
        backups=backups[order],
        initial_load=initial_load,
        loads=loads,
        report=replace(
            demand.report,
            unplaced=len(demand.rates) - order.size,
            admitted_rate=float(rates.rates.sum()),
            cold_rate=float(initial_load.sum()),
            slots_used=int(replicas.sum()),
        ),
    )


def _pair_rows(starts: Ints, counts: Ints) -> Ints:
    """Positions of all pairs: for each row, ``count`` consecutive ones from its start."""
    if counts.max(initial=1) == 1:
        return starts  # one replica each
    ends = np.cumsum(counts)
    return np.asarray(np.repeat(starts - ends + counts, counts) + np.arange(ends[-1]))


def loads_of(members: Ints, jobs: Jobs, initial_load: Floats) -> Floats:
    """L[r], requests per second: the initial load plus λ_b/k_b of every placed replica."""
    shares = np.repeat(jobs.rates / jobs.replicas, jobs.replicas)
    placed = members >= 0
    charged = np.bincount(members[placed], weights=shares[placed], minlength=initial_load.size)
    return np.asarray(initial_load + charged)
