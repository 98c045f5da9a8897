"""A full decision at a fixed partition, made feasible and priced: δ in closed form, r by a small LP.

Given z and π this module decides δ (exact rule) and the cheapest r that satisfies memory (6e) and fit, and
prices the whole. It never returns an infeasible decision: it returns None instead.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.backends.highs import LinearProgram
from kvplan_solver.certified.curves import ReservationCurves
from kvplan_solver.cost import Coefficients, evaluate_with
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.memory import (
    budgets,
    cached_prefixes,
    concurrency,
    memory_tokens,
    prefix_tokens,
)
from kvplan_solver.queueing import utilisation
from kvplan_solver.result import Bools, CostParts

_USED = 1e-9
_SLACK = 1e-9
_CUT_PASSES = 30


@dataclass(frozen=True, eq=False)
class Decision:
    """z, π, r, δ and what they cost; every constraint holds."""

    groups: tuple[int, ...]
    routing: Floats
    reservation: Floats
    cached: Bools
    costs: CostParts
    slo_excess: Floats

    @property
    def objective(self) -> float:
        """Cost per second."""
        return self.costs.total


class Pricer:
    """Turns (z, X) into a priced, feasible decision."""

    def __init__(self, constants: Coefficients, curves: ReservationCurves) -> None:
        self.constants, self.curves = constants, curves
        self.instance: Instance = constants.instance
        self.capacity = np.array([float(k.kv_capacity_tokens) for k in self.instance.configurations])

    def decide(self, groups: tuple[int, ...], rates: Floats, reservation: Floats | None = None) -> Decision | None:
        """The best decision with this partition and these rates, or None if no reservation fits them.

        Args:
            groups: z, length K.
            rates: X = λπ, requests per second, (I, K); cleaned of dust and of overload first.
            reservation: r to use as it is, tokens, (I,); None lets this method choose the cheapest.
        """
        z = np.array(groups, dtype=np.float64)
        X = self._within_utilisation(z, self._within_demand(np.where(z > 0, rates, 0.0)))
        in_flight = concurrency(X, self.constants.T, z)
        cached = cached_prefixes(self.instance, in_flight)
        if reservation is None:
            reservation = self._reservation(z, X, in_flight, cached)
        elif not self._holds(z, X, in_flight, reservation, cached):
            return None
        if reservation is None:
            return None
        lam = self.constants.rates
        routing = np.where(lam[:, None] > 0, X / np.where(lam > 0, lam, 1.0)[:, None], 0.0)
        costs, excess = evaluate_with(self.constants, z, self.curves.costs(reservation), routing)
        return Decision(groups, routing, reservation, cached, costs, excess)

    def _within_demand(self, X: Floats) -> Floats:
        lam = self.constants.rates
        cleaned = np.where(_USED * lam[:, None] < X, X, 0.0)
        total = cleaned.sum(axis=1)
        factor = np.where(total > lam, lam / np.where(total > 0, total, 1.0), 1.0)
        return np.asarray(cleaned * factor[:, None])

    def _within_utilisation(self, z: Floats, X: Floats) -> Floats:
        u = utilisation(X, self.constants.T, z, self.constants.slots)
        limit = self.instance.max_utilisation
        return np.asarray(X * np.where(u > limit, limit / np.where(u > 0, u, 1.0), 1.0)[None, :])

    def _reservation(self, z: Floats, X: Floats, in_flight: Floats, cached: Bools) -> Floats | None:
        best = self._within_fit(X, cached)
        if best is None or self._memory_holds(z, in_flight, best, cached):
            return best
        return self._shrunk(z, X, in_flight, cached, best)

    def _holds(self, z: Floats, X: Floats, in_flight: Floats, reservation: Floats, cached: Bools) -> bool:
        """Whether a given r obeys fit and memory."""
        largest = self._within_fit(X, cached)
        fits = largest is not None and bool(np.all(reservation <= largest))
        return fits and self._memory_holds(z, in_flight, reservation, cached)

    def _within_fit(self, X: Floats, cached: Bools) -> Floats | None:
        """r* cut down to the smallest Q_k + δ·Lpre over the configurations the class uses."""
        block = self.instance.block_tokens
        room = budgets(self.instance, cached)[None, :] + cached * prefix_tokens(self.instance)[:, None]
        most = np.where(X > 0, room // block * block, np.inf).min(axis=1)
        largest = np.minimum(self.curves.best, most)
        return None if np.any(largest < self.curves.smallest) else np.asarray(largest)

    def _memory_holds(self, z: Floats, in_flight: Floats, reservation: Floats, cached: Bools) -> bool:
        used = memory_tokens(self.instance, in_flight, reservation, cached)
        return bool(np.all((used <= self.capacity * (1 + _SLACK)) | (z <= 0)))

    def _shrunk(self, z: Floats, X: Floats, in_flight: Floats, cached: Bools, start: Floats) -> Floats | None:
        """Cheapest r ≤ start that memory allows: cutting planes on c_i, blocks rounded down, then raised."""
        padding = 1 + self.instance.headroom
        over = memory_tokens(self.instance, in_flight, start, cached) - self.capacity
        need = np.where(z > 0, over, 0.0)
        most = start - self.curves.smallest
        relief = padding * in_flight
        if np.any(relief.T @ most < need * (1 - 1e-12) - _SLACK):
            return None
        deficits = self._cut_loop(X.sum(axis=1), relief, need, most, self.curves.best - start)
        if deficits is None:
            return None
        block = self.instance.block_tokens
        reservation = start - np.minimum(most, np.ceil(deficits / block - 1e-7) * block)
        if not self._memory_holds(z, in_flight, reservation, cached):
            return None
        return self._raised(z, X.sum(axis=1), in_flight, cached, reservation, start)

    def _cut_loop(self, weight: Floats, relief: Floats, need: Floats, most: Floats, base: Floats) -> Floats | None:
        """min Σ_i X_i·e_i with e_i ≥ chords of c_i, Σ_i relief_ik·d_i ≥ need_k, 0 ≤ d ≤ most."""
        count = len(weight)
        program = LinearProgram(
            np.concatenate((np.full(count, 1e-9), weight)),
            np.zeros(2 * count),
            np.concatenate((most, np.full(count, np.inf))),
        )
        for k in np.flatnonzero(need > 0):
            scale = max(1.0, float(need[k]))
            where = np.arange(count, dtype=np.int32)
            starts = np.array([0], dtype=np.int32)
            program.add_rows(np.array([need[k] / scale]), np.array([np.inf]), starts, where, relief[:, k] / scale)
        for _ in range(_CUT_PASSES):
            solution = program.solve()
            if not solution.optimal:
                return None
            if not self._add_chords(program, solution.values, weight, base):
                break
        return solution.values[:count]

    def _add_chords(self, program: LinearProgram, values: Floats, weight: Floats, base: Floats) -> int:
        count, added = len(weight), 0
        for i in np.flatnonzero((weight > 0) & (values[:count] > 1e-9)):
            constant, slope = self.curves.chord(int(i), float(base[i] + values[i]))
            owed = constant + slope * (base[i] + values[i])
            if owed - values[count + i] > 1e-7 * max(1.0, owed):
                where = np.array([i, count + i], dtype=np.int32)
                starts = np.array([0], dtype=np.int32)
                lower = np.array([constant + slope * base[i]])
                program.add_rows(lower, np.array([np.inf]), starts, where, np.array([-slope, 1.0]))
                added += 1
        return added

    def _raised(
        self, z: Floats, weight: Floats, in_flight: Floats, cached: Bools, reservation: Floats, most: Floats
    ) -> Floats:
        """Give back whole blocks that rounding down left over, dearest class first."""
        block = float(self.instance.block_tokens)
        r = reservation.copy()
        order = np.lexsort((np.arange(len(r)), -weight))
        for i in order:
            while r[i] < most[i]:
                r[i] += block
                if not self._memory_holds(z, in_flight, r, cached):
                    r[i] -= block
                    break
        return r
