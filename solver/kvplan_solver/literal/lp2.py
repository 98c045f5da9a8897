"""LP2 of Block 1: fix π; optimise r, γ, θ, with all N samples as printed.

min Σ_i λ_i a_i (γ_i ε_i + Σ_n θ_in/N) under (8b)–(8g) and the memory rows (6e), which π makes linear in r.
One kept model per run: between two solves only costs, bounds and memory rows change. The certified method
needs none of this (the samples vanish in closed form); it is here because the paper does it so.
"""

from dataclasses import replace

import numpy as np

from kvplan_solver.backends.highs import INFINITY, LinearProgram
from kvplan_solver.budget import ceil_to_block, floor_to_block
from kvplan_solver.instance import ClassInput, Floats
from kvplan_solver.literal.decision import Decision, Problem
from kvplan_solver.memory import budgets


def robust_loss(problem: Problem, at: Decision) -> Floats:
    """γε + Σ_n θ_n/N with the smallest θ that (8b)–(8g) allow at this r and γ, cost per request, (I,)."""
    return np.array(
        [
            price * c.radius + float(_smallest_theta(c, r - c.input_tokens_p95, price).mean())
            for c, r, price in zip(problem.instance.classes, at.reservation, at.transport_price, strict=True)
        ]
    )


def _smallest_theta(c: ClassInput, eta: float, price: float) -> Floats:
    """Largest right side of (8b)–(8e) and 0, per sample."""
    xi, limit, cp, cw = c.output_lengths, float(c.max_output_tokens), c.preemption_cost, c.waste_cost
    lines = (
        cp * (xi - eta),
        cw * (eta - xi),
        cp * (limit - eta) - price * (limit - xi),
        cw * eta - price * xi,
    )
    return np.asarray(np.maximum.reduce(lines).clip(0.0))


class ReservationProgram:
    """LP2, kept between solves. Columns: r per class, γ per class, then θ class by class."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        classes = problem.instance.classes
        self.count = len(classes)
        self.samples = np.array([len(c.output_lengths) for c in classes])
        self.first_theta = 2 * self.count + np.concatenate(([0], np.cumsum(self.samples)))
        self.low = np.array([float(c.input_tokens_p95) for c in classes])
        self.high = self.low + np.array([float(c.max_output_tokens) for c in classes])
        total = int(self.first_theta[-1])
        lower = np.zeros(total)
        lower[: self.count] = self.low
        self.program = LinearProgram(np.zeros(total), lower, np.full(total, INFINITY))
        for i, c in enumerate(classes):
            self._add_epigraph(i, c)
        self.epigraph_rows = self.program.rows

    def _add_epigraph(self, i: int, c: ClassInput) -> None:
        """(8b)–(8e) for one class, as ``lower ≤ θ + slope·r + toll·γ``."""
        xi, n = c.output_lengths, len(c.output_lengths)
        limit, lin, cp, cw = float(c.max_output_tokens), self.low[i], c.preemption_cost, c.waste_cost
        zero = np.zeros(n)
        self._add_lines(i, cp * (xi + lin), cp, zero)
        self._add_lines(i, -cw * (xi + lin), -cw, zero)
        self._add_lines(i, np.full(n, cp * (limit + lin)), cp, limit - xi)
        self._add_lines(i, np.full(n, -cw * lin), -cw, xi)

    def _add_lines(self, i: int, lower: Floats, slope: float, toll: Floats) -> None:
        n = len(lower)
        theta = np.arange(self.first_theta[i], self.first_theta[i + 1])
        columns = np.column_stack((np.full(n, i), np.full(n, self.count + i), theta))
        values = np.column_stack((np.full(n, slope), toll, np.ones(n)))
        present = values != 0
        starts = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
        self.program.add_rows(lower, np.full(n, INFINITY), starts[:-1], columns[present], values[present])

    def propose_reservation(self, at: Decision, time_limit: float | None = None) -> Decision | None:
        """The best r and γ for π, with r on the block grid; None when the LP found none in time.

        A class that is not routed has no cost here, so any r is optimal: it keeps the one it has.
        """
        admitted = at.routing.sum(axis=1)
        self._set_costs(self.problem.constants.rates * admitted)
        most = self._longest_fit(at)
        if np.any(most < self.low):
            return None
        self.program.set_column_bounds(np.arange(self.count), self.low, most)
        self.program.delete_rows(self.epigraph_rows)
        self._add_memory_rows(at)
        solution = self.program.solve(time_limit=time_limit)
        if not solution.optimal:
            return None
        idle = admitted <= 0
        r = np.where(idle, at.reservation, solution.values[: self.count])
        price = np.where(idle, at.transport_price, solution.values[self.count : 2 * self.count])
        return self._on_grid(replace(at, transport_price=price.clip(0.0)), r)

    def _set_costs(self, weight: Floats) -> None:
        """λ_i a_i times (ε for γ, 1/N for each θ)."""
        radius = np.array([c.radius for c in self.problem.instance.classes])
        theta = np.repeat(weight / self.samples, self.samples)
        costs = np.concatenate((np.zeros(self.count), weight * radius, theta))
        self.program.set_costs(np.arange(len(costs)), costs)

    def _longest_fit(self, at: Decision) -> Floats:
        """Lin + Lmax, or what the tightest group in use still lets one request hold, tokens, (I,)."""
        room = budgets(self.problem.instance, at.cached)[None, :] + at.cached * self.problem.prefix[:, None]
        block = self.problem.instance.block_tokens
        most = np.array([floor_to_block(x, block) for x in room.ravel()]).reshape(room.shape)
        tightest = np.where(at.routing > 0, most, np.inf).min(axis=1)
        return np.asarray(np.minimum(self.high, tightest))

    def _add_memory_rows(self, at: Decision) -> None:
        """(6e) in r, as a share of what the pinned prefixes leave."""
        used = at.routing.sum(axis=0) > 0
        left = self.problem.memory_left(at.cached)[used]
        held = (1 + self.problem.instance.headroom) * self.problem.in_flight(at)[:, used]
        saved = (held * at.cached[:, used] * self.problem.prefix[:, None]).sum(axis=0)
        rows = np.zeros((int(used.sum()), self.program.columns))
        rows[:, : self.count] = (held / left).T
        self.program.add_dense_rows(np.full(len(rows), -INFINITY), (left + saved) / left, rows)

    def _on_grid(self, at: Decision, reservation: Floats) -> Decision:
        """Up to the block; where memory then no longer holds, down to the block."""
        block = self.problem.instance.block_tokens
        up = np.array([float(ceil_to_block(r - 1e-6, block)) for r in reservation])
        rounded = self.problem.priced(replace(at, reservation=up))
        if self.problem.feasible(rounded):
            return rounded
        least = np.array([float(ceil_to_block(low, block)) for low in self.low])
        down = np.array([float(floor_to_block(r + 1e-6, block)) for r in reservation])
        return self.problem.priced(replace(at, reservation=np.maximum(least, down)))
