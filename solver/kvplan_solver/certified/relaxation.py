"""The relaxation: a MILP in X = λπ and z whose optimum bounds the cost of every plan from below.

Exact: demand, utilisation u ≤ u_max, GPU limits, chunk rows of the node fit. Relaxed, each from below:

- waiting: Σ_i q_ik ≥ z·v·u²/(1−u) by tangents of the perspective; how the q_ik split over the classes is
  free, which is what makes X·W convex;
- memory (6e) and fit: each pair may shrink its reservation by its own d_ik (D_ik = X_ik·d_ik) at the
  convex price c_i, by chords of its perspective; one r per class is restored by the polish;
- caching: the saving max(0, (1+κ)n − 1)·Lpre by the chord of its concave envelope.

Rows that cannot bind are left out, and rows that rarely bind are added when violated. Columns: X, q, D, h
per pair; z per configuration; σ per class; switches per configuration.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.backends.highs import LinearProgram, Solution
from kvplan_solver.certified.cells import add_cell_rows
from kvplan_solver.certified.columns import Columns
from kvplan_solver.certified.curves import ReservationCurves
from kvplan_solver.certified.fit import allowed_pairs, fit_deficit
from kvplan_solver.certified.rows import RowBuilder
from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.memory import prefix_tokens
from kvplan_solver.packing import chunk_rows, most_groups

_FIRST_TANGENTS = (0.2, 0.5, 0.7, 0.85, 0.93)
_TOLERANCE = 1e-7
_LIGHT = 1e-2


class Relaxation:
    """One kept program, tightened by cuts and solved again and again.

    Attributes:
        i_of: class of each pair.
        k_of: configuration of each pair.
    """

    def __init__(
        self, constants: Coefficients, curves: ReservationCurves, *, integer: bool, edges: Floats | None = None
    ) -> None:
        self.constants, self.curves = constants, curves
        self.instance: Instance = constants.instance
        self.allowed = allowed_pairs(constants, curves)
        pairs = np.argwhere(self.allowed)
        self.i_of, self.k_of = pairs[:, 0], pairs[:, 1]
        cells = 0 if edges is None else edges.shape[1] - 1
        self.columns = Columns(len(pairs), len(self.instance.configurations), len(self.instance.classes), cells)
        self.tracked = self._memory_may_bind()
        self.offset = float(constants.rates @ constants.rejection_weight)
        self.most = most_groups(self.instance)
        self.program = self._empty_program(integer)
        self.gpu_rows, self.memory_rows = self._add_fixed_rows(edges)
        self.cuts: list[RowBuilder] = []
        self.work = {"cuts": 0, "iterations": 0, "nodes": 0, "solves": 0}
        for u in () if integer else _FIRST_TANGENTS:
            self._add_tangents(np.full(self.columns.configurations, u), range(self.columns.configurations))

    def _memory_may_bind(self) -> NDArray[np.bool_]:
        """Configurations whose memory row could bind: a queue below u_max holds at most u_max·S requests."""
        instance, largest = self.instance, self.curves.best.max(initial=0.0)
        most_in_flight = instance.max_utilisation * self.constants.slots
        capacity = np.array([k.kv_capacity_tokens for k in instance.configurations])
        return np.asarray((1 + instance.headroom) * most_in_flight * largest > capacity)

    def _costs(self) -> Floats:
        col, c = self.columns, self.constants
        costs = np.zeros(col.total)
        pair_cost = self.curves.best_cost[self.i_of] + self.fit_extra + c.gpu_cost[self.i_of, self.k_of]
        costs[: col.pairs] = pair_cost - c.rejection_weight[self.i_of]
        costs[col.z : col.slack] = self.instance.idle_gpu_second_cost * c.gpus
        costs[col.slack : col.wait] = c.latency_weight
        costs[col.extra : col.switches] = 1.0
        costs[col.switches : col.cell_rate] = self.instance.switching_cost
        return costs

    def _empty_program(self, integer: bool) -> LinearProgram:
        col, c = self.columns, self.constants
        costs, upper = self._costs(), np.full(col.total, np.inf)
        upper[: col.pairs] = c.rates[self.i_of]
        # Without a cap on groups the GPU rows imply the LP's limits, and their duals price a GPU.
        upper[col.z : col.slack] = self.most if integer or self.instance.max_groups else np.inf
        untracked = ~self.tracked[self.k_of]
        for start in (col.deficit, col.extra):
            upper[start : start + col.pairs][untracked] = 0.0
        kinds = np.zeros(col.total, dtype=bool)
        kinds[col.z : col.slack] = integer
        kinds[col.cell_open :] = True
        upper[col.cell_open :] = 1.0
        return LinearProgram(costs, np.zeros(col.total), upper, kinds)

    @cached_property
    def fit_extra(self) -> Floats:
        """Price per request of shrinking r* to the largest budget a group of the pair can offer, (pairs,)."""
        shrink = fit_deficit(self.instance, self.curves)[self.i_of, self.k_of]
        return np.array([self.curves.extra(i, d) if d > 0 else 0.0 for i, d in zip(self.i_of, shrink, strict=True)])

    def _add_fixed_rows(self, edges: Floats | None) -> tuple[dict[int, int], dict[int, int]]:
        rows = RowBuilder()
        self._demand_rows(rows)
        self._utilisation_rows(rows)
        self._latency_rows(rows)
        gpu_rows = self._gpu_rows(rows)
        memory_rows = self._memory_rows(rows)
        self._switch_rows(rows)
        self._routing_rows(rows)
        if edges is not None:
            add_cell_rows(rows, self.columns, self.i_of, self.k_of, self.constants.rates, edges)
        rows.add_to(self.program)
        return gpu_rows, memory_rows

    def _demand_rows(self, rows: RowBuilder) -> None:
        for i, rate in enumerate(self.constants.rates):
            own = np.flatnonzero(self.i_of == i)
            rows.add(-np.inf, float(rate), own, np.ones(len(own)))

    def _utilisation_rows(self, rows: RowBuilder) -> None:
        c = self.constants
        for k in range(self.columns.configurations):
            own = np.flatnonzero(self.k_of == k)
            room = -self.instance.max_utilisation * c.slots[k]
            rows.add(-np.inf, 0.0, np.append(own, self.columns.z + k), np.append(c.T[self.i_of[own], k], room))

    def _latency_rows(self, rows: RowBuilder) -> None:
        col, c = self.columns, self.constants
        for i in range(col.classes):
            own = np.flatnonzero(self.i_of == i)
            late = c.T[i, self.k_of[own]] - c.slo[i]
            where = np.concatenate((own, col.wait + own, [col.slack + i]))
            rows.add(-np.inf, 0.0, where, np.concatenate((late, np.ones(len(own)), [-1.0])))

    def _gpu_rows(self, rows: RowBuilder) -> dict[int, int]:
        """(6b) and the chunk rows: row number to chunk size."""
        z = np.arange(self.columns.z, self.columns.slack)
        number = rows.add(float(self.instance.min_gpus), float(self.instance.gpu_budget), z, self.constants.gpus)
        sizes = {number: 1}
        for row in chunk_rows(self.instance):
            weights = np.array(row.weights, dtype=np.float64)
            sizes[rows.add(-np.inf, float(row.limit), z, weights)] = row.size
        return sizes

    def _memory_rows(self, rows: RowBuilder) -> dict[int, int]:
        """(1+κ)Σ T(r*X − D) − Σ Lpre·saving ≤ M·z per tracked configuration, the saving at its envelope."""
        col, c, padding = self.columns, self.constants, 1 + self.instance.headroom
        prefix = prefix_tokens(self.instance)
        numbers: dict[int, int] = {}
        for k in np.flatnonzero(self.tracked):
            own = np.flatnonzero(self.k_of == k)
            T = padding * c.T[self.i_of[own], k]
            most = np.minimum(padding * self.instance.max_utilisation * c.slots[k], T * c.rates[self.i_of[own]])
            saved = np.maximum(0.0, 1 - 1 / np.maximum(most, 1.0)) * prefix[self.i_of[own]]
            where = np.concatenate((own, col.deficit + own, [col.z + k]))
            capacity = float(self.instance.configurations[k].kv_capacity_tokens)
            held = np.concatenate((T * (self.curves.best[self.i_of[own]] - saved), -T, [-capacity]))
            numbers[int(k)] = rows.add(-np.inf, 0.0, where, held)
        self._fit_rows(rows)
        return numbers

    def _fit_rows(self, rows: RowBuilder) -> None:
        """X·(fit deficit) ≤ D ≤ X·(r* − smallest): a request never holds less than its prompt."""
        col, least = self.columns, fit_deficit(self.instance, self.curves)
        reach = (self.curves.best - self.curves.smallest)[self.i_of]
        for j in np.flatnonzero(self.tracked[self.k_of]):
            rows.add(-np.inf, 0.0, np.array([col.deficit + j, j]), np.array([1.0, -reach[j]]))
        for j in np.flatnonzero(self.tracked[self.k_of] & (least[self.i_of, self.k_of] > 0)):
            shrink = float(least[self.i_of[j], self.k_of[j]])
            rows.add(0.0, np.inf, np.array([col.deficit + j, j]), np.array([1.0, -shrink]))

    def _routing_rows(self, rows: RowBuilder) -> None:
        """(6c) X ≤ λ·z where a class is so light that utilisation alone would let z round to 0."""
        c, room = self.constants, self.instance.max_utilisation * self.constants.slots
        light = c.rates[self.i_of] * c.T[self.i_of, self.k_of] < _LIGHT * room[self.k_of]
        for j in np.flatnonzero(light):
            where = np.array([j, self.columns.z + self.k_of[j]])
            rows.add(-np.inf, 0.0, where, np.array([1.0, -float(c.rates[self.i_of[j]])]))

    def _switch_rows(self, rows: RowBuilder) -> None:
        if self.instance.switching_cost <= 0:
            return
        col = self.columns
        for k, now in enumerate(self.instance.running_counts):
            where = np.array([col.z + k, col.switches + k])
            rows.add(-np.inf, float(now), where, np.array([1.0, -1.0]))
            rows.add(float(now), np.inf, where, np.array([1.0, 1.0]))

    def fix_groups(self, groups: NDArray[np.int64]) -> None:
        """Pin z, so that the optimum bounds every plan with this partition."""
        where = np.arange(self.columns.z, self.columns.slack, dtype=np.int32)
        self.program.set_column_bounds(where, groups.astype(np.float64), groups.astype(np.float64))

    def free_groups(self) -> None:
        """Let z move again."""
        where = np.arange(self.columns.z, self.columns.slack, dtype=np.int32)
        self.program.set_column_bounds(where, np.zeros(len(where)), np.full(len(where), np.inf))

    def solve(
        self,
        node_limit: int | None = None,
        relative_gap: float | None = None,
        time_limit: float | None = None,
    ) -> Solution:
        """Solve as it stands. Objective and bound lack ``offset`` (the cost of rejecting everything)."""
        solution = self.program.solve(time_limit=time_limit, node_limit=node_limit, relative_gap=relative_gap)
        self.work["iterations"] += solution.iterations
        self.work["nodes"] += solution.nodes
        self.work["solves"] += 1
        return solution

    def fewest_gpus(self, limit: float, node_limit: int) -> Solution:
        """The partition with the fewest GPUs among those whose relaxed cost is at most ``limit``."""
        every = np.arange(self.columns.total, dtype=np.int32)
        costs, gpus = self._costs(), np.zeros(self.columns.total)
        gpus[self.columns.z : self.columns.slack] = self.constants.gpus
        row = self.program.add_rows(
            np.array([-np.inf]), np.array([limit - self.offset]), np.array([0], dtype=np.int32), every, costs
        )
        self.program.set_costs(every, gpus)
        solution = self.solve(node_limit=node_limit)
        self.program.set_costs(every, costs)
        self.program.delete_rows(row.start)
        return solution

    def tighten(self, values: Floats) -> int:
        """Add the tangents and chords that ``values`` violates; returns how many."""
        added = self._tighten_waiting(values) + self._tighten_deficits(values)
        self.work["cuts"] += added
        return added

    def groups_of(self, values: Floats) -> Floats:
        """z of a solution, (K,)."""
        return values[self.columns.z : self.columns.slack]

    def rates_of(self, values: Floats) -> Floats:
        """X of a solution as a matrix, requests per second, (I, K)."""
        X = np.zeros((self.columns.classes, self.columns.configurations))
        X[self.i_of, self.k_of] = values[: self.columns.pairs].clip(0.0)
        return X

    def _tighten_waiting(self, values: Floats) -> int:
        col, c = self.columns, self.constants
        z = self.groups_of(values)
        load = np.bincount(self.k_of, values[: col.pairs] * c.T[self.i_of, self.k_of], minlength=col.configurations)
        wait = np.bincount(self.k_of, values[col.wait : col.deficit], minlength=col.configurations)
        room = z * c.slots
        u = np.clip(np.where(room > 1e-9, load / np.maximum(room, 1e-9), 0.0), 0.0, self.instance.max_utilisation)
        true = c.v * z * u**2 / (1 - u)
        scale = max(1.0, float(np.abs(true).max(initial=0.0)))
        violated = [k for k in range(col.configurations) if true[k] - wait[k] > _TOLERANCE * scale + 1e-4 * true[k]]
        self._add_tangents(u, violated)
        return len(violated)

    def _add_tangents(self, u: Floats, which: "range | list[int]") -> None:
        """Σ_i q_ik ≥ v·[g'(u0)/S·load + (g(u0) − u0·g'(u0))·z] with g(u) = u²/(1−u)."""
        rows, col, c = RowBuilder(), self.columns, self.constants
        for k in which:
            own = np.flatnonzero(self.k_of == k)
            slope = (2 * u[k] - u[k] ** 2) / (1 - u[k]) ** 2
            level = u[k] ** 2 / (1 - u[k]) - u[k] * slope
            per_rate = -c.v[k] * slope / c.slots[k] * c.T[self.i_of[own], k]
            where = np.concatenate((own, col.wait + own, [col.z + k]))
            rows.add(0.0, np.inf, where, np.concatenate((per_rate, np.ones(len(own)), [-c.v[k] * level])))
        self._add_cuts(rows)

    def _add_cuts(self, rows: RowBuilder) -> None:
        rows.add_to(self.program)
        self.cuts.append(rows)

    def copy_cuts_to(self, other: "Relaxation") -> None:
        """Give another program of the same instance the cuts it has not got yet."""
        for rows in self.cuts[len(other.cuts) :]:
            other._add_cuts(rows)

    def _tighten_deficits(self, values: Floats) -> int:
        """Chords of the price of a deficit, where D/X lies above what is paid."""
        rows, col = RowBuilder(), self.columns
        X, D, paid = values[: col.pairs], values[col.deficit : col.extra], values[col.extra : col.switches]
        reach = (self.curves.best - self.curves.smallest)[self.i_of]
        for j in np.flatnonzero(self.tracked[self.k_of] & (D > _TOLERANCE * X) & (X > 1e-12)):
            constant, slope = self.curves.chord(int(self.i_of[j]), min(reach[j], D[j] / X[j]))
            owed = (constant - self.fit_extra[j]) * X[j] + slope * D[j]
            if owed - paid[j] > 1e-6 * max(1.0, abs(owed)):
                where = np.array([j, col.deficit + j, col.extra + j])
                rows.add(-np.inf, 0.0, where, np.array([constant - self.fit_extra[j], slope, -1.0]))
        self._add_cuts(rows)
        return len(rows.lower)
