"""The model linearised at one decision, as a linear program (02-solver §3, step 3).

At fixed z the only nonconvex terms are X·W(X) in the latency rows (6f) and X·r in memory (6e). Both are
replaced by their first-order change inside a trust region. z enters as fixed columns, so that their reduced
costs price one more or one less group.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.backends.highs import LinearProgram
from kvplan_solver.certified.decision import Decision, Pricer
from kvplan_solver.certified.relaxation import Relaxation
from kvplan_solver.certified.rows import RowBuilder
from kvplan_solver.instance import Floats
from kvplan_solver.memory import prefix_tokens
from kvplan_solver.queueing import utilisation

Ints = NDArray[np.int64]

_OPENING_UTILISATION = 0.6


@dataclass(frozen=True, eq=False)
class _Point:
    """Where the model is linearised: rates (I, K); waiting and its gradient parts, each (K,)."""

    X: Floats
    W: Floats
    total: Floats
    by_load: Floats
    by_groups: Floats


@dataclass(frozen=True, eq=False)
class StepSolution:
    """The optimum of one linearised model: its basis, X per pair (requests/s), ∂cost/∂z per configuration."""

    basis: object
    rates: Floats
    group_prices: Floats


class LinearStep:
    """The model linearised at one decision, over some pairs.

    Columns: X per pair, σ per class, ΔW and z (fixed) per configuration, d (deficit) and e (its price) per
    class.
    """

    def __init__(
        self, relaxation: Relaxation, pricer: Pricer, at: Decision, pairs: Ints, *, keep_reservation: bool = False
    ) -> None:
        self.constants, self.instance, self.pricer = relaxation.constants, relaxation.instance, pricer
        self.at, self.i_of, self.k_of = at, relaxation.i_of[pairs], relaxation.k_of[pairs]
        self.z = np.array(at.groups, dtype=np.float64)
        self.keep_reservation = keep_reservation
        self.tracked = relaxation.tracked & (self.z > 0)
        self.classes, self.configurations = at.routing.shape
        self.slack = len(pairs)
        self.change = self.slack + self.classes
        self.groups = self.change + self.configurations
        self.shrink = self.groups + self.configurations
        self.price = self.shrink + self.classes
        self.point = self._point(at)
        self.deficit = pricer.curves.best - at.reservation

    def solve(self, radius: float, basis: object = None) -> StepSolution | None:
        """The optimum within ``radius``·λ of the current rates; None if there is none."""
        program = self._program(radius)
        rows = RowBuilder()
        self._capacity_rows(rows)
        self._latency_rows(rows)
        self._memory_rows(rows)
        rows.add_to(program)
        if basis is not None:
            program.set_basis(basis)
        solution = program.solve()
        if not solution.optimal:
            return None
        return StepSolution(
            program.basis, solution.values[: self.slack], solution.reduced_costs[self.groups : self.shrink]
        )

    def _point(self, at: Decision) -> _Point:
        c = self.constants
        X = at.routing * c.rates[:, None]
        u = utilisation(X, c.T, self.z, c.slots)
        total, level, slope = X.sum(axis=0), u**2 / (1 - u), (2 * u - u**2) / (1 - u) ** 2
        busy = np.where(total > 0, total, 1.0)
        W = np.where(total > 0, c.v * self.z * level / busy, self._first_wait())
        return _Point(X, W, total, c.v * slope / c.slots, c.v * (level - u * slope))

    def _first_wait(self) -> Floats:
        """W of a configuration about to be opened, (K,): as if run at a middling utilisation."""
        c, u = self.constants, _OPENING_UTILISATION
        wait = u * c.v * c.T.mean(axis=0) / (c.slots * (1 - u))
        return np.asarray(np.where(self.z > 0, 0.0, wait))

    def _program(self, radius: float) -> LinearProgram:
        c, i_of, k_of, curves = self.constants, self.i_of, self.k_of, self.pricer.curves
        now, lam = self.point.X[i_of, k_of], c.rates[i_of]
        per_request = curves.costs(self.at.reservation)
        price = per_request[i_of] + c.gpu_cost[i_of, k_of] - c.rejection_weight[i_of]
        free_to_shrink = self.tracked.any() and not self.keep_reservation
        least, most = (np.zeros(self.classes), curves.best - curves.smallest) if free_to_shrink else (self.deficit,) * 2
        none, free = np.zeros(self.classes), np.full(self.configurations, np.inf)
        costs = (price, c.latency_weight, np.zeros(2 * self.configurations), none, self.point.X.sum(axis=1))
        lower = (np.maximum(0.0, now - radius * lam), none, -free, self.z, least, none)
        upper = (np.minimum(lam, now + radius * lam), none + np.inf, free, self.z, most, none + np.inf)
        return LinearProgram(np.concatenate(costs), np.concatenate(lower), np.concatenate(upper), primal=True)

    def _capacity_rows(self, rows: RowBuilder) -> None:
        c = self.constants
        for i in range(self.classes):
            own = np.flatnonzero(self.i_of == i)
            rows.add(-np.inf, float(c.rates[i]), own, np.ones(len(own)))
        for k in np.unique(self.k_of).tolist():
            own = np.flatnonzero(self.k_of == k)
            room = -self.instance.max_utilisation * c.slots[k]
            rows.add(-np.inf, 0.0, np.append(own, self.groups + k), np.append(c.T[self.i_of[own], k], room))

    def _latency_rows(self, rows: RowBuilder) -> None:
        """(6f) with X·W ≈ X·W₀ + X₀·ΔW, and ΔW_k = ∇W_k·(X − X₀, z − z₀)."""
        c, point = self.constants, self.point
        for i in range(self.classes):
            own = np.flatnonzero(self.i_of == i)
            k = self.k_of[own]
            late = point.W[k] + c.T[i, k] - c.slo[i]
            where = np.concatenate((own, [self.slack + i], self.change + k))
            rows.add(-np.inf, 0.0, where, np.concatenate((late, [-1.0], point.X[i, k])))
        for column in np.flatnonzero(point.total > 0).tolist():
            own = np.flatnonzero(self.k_of == column)
            by_rate = (point.by_load[column] * c.T[self.i_of[own], column] - point.W[column]) / point.total[column]
            by_groups = point.by_groups[column] / point.total[column]
            now = float(by_rate @ point.X[self.i_of[own], column] + by_groups * self.z[column])
            where = np.concatenate((own, [self.change + column, self.groups + column]))
            rows.add(-now, -now, where, np.concatenate((-by_rate, [1.0, -by_groups])))

    def _memory_rows(self, rows: RowBuilder) -> None:
        """(6e) linearised in X and d, and chords of c_i around the current deficit."""
        if not self.tracked.any():
            return
        padding, prefix = 1 + self.instance.headroom, prefix_tokens(self.instance)
        point, at = self.point, self.at
        for k in np.flatnonzero(self.tracked).tolist():
            own = np.flatnonzero(self.k_of == k)
            i = self.i_of[own]
            T = padding * self.constants.T[i, k]
            held = at.reservation[i] - at.cached[i, k] * prefix[i]
            room = float((at.cached[:, k] * prefix).sum()) - self.pricer.capacity[k]
            where = np.concatenate((own, self.shrink + i, [self.groups + k]))
            limit = -float(T * point.X[i, k] @ self.deficit[i])
            rows.add(-np.inf, limit, where, np.concatenate((T * held, -T * point.X[i, k], [room])))
        for number in np.flatnonzero(point.X.sum(axis=1) > 0).tolist():
            self._price_rows(rows, number, float(self.deficit[number]))

    def _price_rows(self, rows: RowBuilder, i: int, deficit: float) -> None:
        curves = self.pricer.curves
        reach = float(curves.best[i] - curves.smallest[i])
        if reach <= 0:
            return
        where: Ints = np.array([self.shrink + i, self.price + i])
        for at in sorted({deficit, deficit / 2, min(reach, 2 * deficit + curves.block), reach}):
            constant, slope = curves.chord(i, at)
            rows.add(constant, np.inf, where, np.array([-slope, 1.0]))
