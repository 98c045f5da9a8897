"""What a reservation costs on the grid of KV blocks: the samples vanish from the joint problem here.

A reservation is whole blocks, so the best one is a neighbour of the closed-form order on that grid, and
shrinking it by d tokens costs c(d) = f(r*−d) − f(r*): convex, tabulated once per class when first needed.
"""

from functools import cached_property

import numpy as np

from kvplan_solver.budget import ceil_to_block, floor_to_block
from kvplan_solver.instance import ClassInput, Floats, Instance
from kvplan_solver.newsvendor import RobustOrder, robust_order, worst_case_cost


class ReservationCurves:
    """Best reservation per class and the price of less.

    Attributes:
        orders: the closed form per class (not rounded), for thresholds.
        smallest: ceil(Lin/B)·B, tokens, (I,): the least a request can hold.
        best: r*, tokens on the block grid, (I,).
        best_cost: f(r* − Lin), cost per admitted request, (I,).
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.block = instance.block_tokens
        self.orders: tuple[RobustOrder, ...] = tuple(robust_order(c, instance.ambiguity) for c in instance.classes)
        self.smallest: Floats = np.array(
            [float(ceil_to_block(c.input_tokens_p95, self.block)) for c in instance.classes]
        )
        neighbours = [self._best_neighbour(i) for i in range(len(instance.classes))]
        self.best: Floats = np.array([r for r, _ in neighbours])
        self.best_cost: Floats = np.array([cost for _, cost in neighbours])
        self._tables: dict[int, Floats] = {}

    def _best_neighbour(self, i: int) -> tuple[float, float]:
        c, order = self.instance.classes[i], self.orders[i]
        target = c.input_tokens_p95 + order.output_tokens
        low = max(float(floor_to_block(target, self.block)), float(self.smallest[i]))
        if low == target:
            return low, order.cost
        candidates = np.array([low, low + self.block])
        costs = self._cost_of(c, candidates)
        at = int(np.argmin(costs))  # ties go to the smaller reservation
        return float(candidates[at]), float(costs[at])

    def _cost_of(self, c: ClassInput, reservation: Floats) -> Floats:
        return worst_case_cost(c, self.instance.ambiguity, reservation - c.input_tokens_p95)

    def extra(self, i: int, deficit: float) -> float:
        """c_i(d), cost per request of reserving d tokens (on the grid) less than r*."""
        return float(self.extras(i)[self._step(i, deficit)])

    def _step(self, i: int, deficit: float) -> int:
        return min(len(self.extras(i)) - 1, max(0, round(deficit / self.block)))

    def extras(self, i: int) -> Floats:
        """c_i at d = 0, B, 2B, … down to the smallest reservation: convex and increasing."""
        if i not in self._tables:
            grid = np.arange(self.best[i], self.smallest[i] - 1, -self.block)
            costs = self._cost_of(self.instance.classes[i], grid) - self.best_cost[i]
            self._tables[i] = np.maximum.accumulate(costs.clip(0.0))
        return self._tables[i]

    def chord(self, i: int, deficit: float) -> tuple[float, float]:
        """(a, b) of the linear piece a + b·d of c_i that is tight at d, valid below c_i everywhere."""
        extras = self.extras(i)
        if len(extras) == 1:
            return 0.0, 0.0
        step = min(len(extras) - 2, max(0, int(deficit / self.block)))
        slope = float(extras[step + 1] - extras[step]) / self.block
        return float(extras[step]) - slope * step * self.block, slope

    def costs(self, reservation: Floats) -> Floats:
        """f(r − Lin) per class for reservations on the grid and at most r*, (I,)."""
        return np.array(
            [
                self.best_cost[i] + (self.extra(i, self.best[i] - r) if r < self.best[i] else 0.0)
                for i, r in enumerate(reservation)
            ]
        )

    @cached_property
    def shift_thresholds(self) -> tuple[float, ...]:
        """R per class, tokens."""
        return tuple(order.shift_threshold_tokens for order in self.orders)
