"""From exact shares π to thousandths that still keep every constraint.

Inputs: an instance and a feasible result on it. Output: the same decision with shares in thousandths, costs
recomputed. Pure.

The rule, per class: (1) the admitted share is rounded down to a thousandth, never above 1000; (2) routes get
the floor of their share and the largest remainders one more each until they add up to it, ties in the order
of configurations; (3) where rounding up overloads a configuration (utilisation above u_max, or memory (6e)),
thousandths are taken from it, the most over-rounded class first, and given to a configuration that the exact
plan uses for that class and that stays within its limits, the most under-rounded first; without one they are
rejected. Overload strictly falls with every step, so (3) ends. The result keeps every constraint within
``TOLERANCE``, a tenth of what ``kvplan_solver.certificate`` allows by default.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kvplan_operator.plan.pricing import price
from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.memory import concurrency, effective_tokens, memory_tokens
from kvplan_solver.queueing import utilisation
from kvplan_solver.result import Bools, Rejection, Result, Status
from kvplan_solver.units import MILLI

Shares = NDArray[np.int64]

TOLERANCE = 1e-7
"""Relative overload that rounding may leave."""
_WHOLE = 1e-6  # thousandths below a whole number that count as float noise of the solver


def round_result(instance: Instance, result: Result, gap_target: float) -> Result:
    """The decision with shares in thousandths, everything that follows from them recomputed.

    Args:
        instance: the frozen instance the result belongs to.
        result: exact and feasible.
        gap_target: gap within which the rounded result still counts as Optimal.
    """
    shares = round_shares(instance, result)
    routing = shares / MILLI
    cached = result.cached & (shares > 0)
    costs, excess = price(instance, result.groups, result.reservation_tokens, routing)
    rounded = replace(
        result,
        routing=routing,
        cached=cached,
        costs=costs,
        slo_excess_seconds=excess,
        lower_bound=float(min(result.lower_bound, costs.total)),
        rejections=tuple(_rejections(instance, result, shares)),
    )
    proven = result.status is Status.OPTIMAL and rounded.gap <= gap_target
    return rounded if proven or result.status is not Status.OPTIMAL else replace(rounded, status=Status.FEASIBLE)


def _rejections(instance: Instance, result: Result, shares: Shares) -> Iterator[Rejection]:
    """The solver's reasons with the rounded shares, and one more where rounding alone rejects."""
    known = {rejection.class_name: rejection for rejection in result.rejections}
    for c, row in zip(instance.classes, shares, strict=True):
        share = (MILLI - int(row.sum())) / MILLI
        if c.name in known and share > 0:
            yield replace(known[c.name], share=share)
        elif share > 0 and c.arrival_rate > 0:
            why = "shares are whole thousandths, and the next one would overload every configuration it may go to"
            yield Rejection(c.name, share, why, "add one group, or lower its arrival rate a little")


def round_shares(instance: Instance, result: Result) -> Shares:
    """Shares in thousandths, shape (I, K), by the rule of this module."""
    exact = result.routing * MILLI
    shares = np.array([_largest_remainders(row) for row in exact], dtype=np.int64).reshape(exact.shape)
    return _Repair(instance, result, exact, shares).repaired()


def _largest_remainders(exact: Floats) -> Shares:
    """Integers that add up to the floor of the sum, each the floor of its share or one more."""
    total = min(MILLI, int(np.floor(exact.sum() + _WHOLE)))
    floors = np.floor(exact + _WHOLE).astype(np.int64)
    order = np.argsort(-(exact - floors), kind="stable")
    rounded = floors.copy()
    rounded[order[: max(0, total - int(floors.sum()))]] += 1
    return rounded


class _Repair:
    """Moves thousandths off configurations that rounding overloaded."""

    def __init__(self, instance: Instance, result: Result, exact: Floats, shares: Shares) -> None:
        self.instance, self.exact, self.shares = instance, exact, shares
        self.constants = Coefficients(instance)
        self.groups = np.array(result.groups, dtype=np.float64)
        self.reservation = np.array(result.reservation_tokens, dtype=np.float64)
        self.cached: Bools = result.cached
        self.capacity = np.array([float(k.kv_capacity_tokens) for k in instance.configurations])

    def repaired(self) -> Shares:
        """Shares without overload."""
        over = np.flatnonzero(self._overloaded())
        while over.size:
            self._relieve(int(over[0]))
            over = np.flatnonzero(self._overloaded())
        return self.shares

    def _overloaded(self) -> Bools:
        """Configurations beyond a limit that still carry something, length K."""
        busy, full = self._limits_passed()
        return np.asarray((busy | full) & self._carrying().any(axis=0))

    def _limits_passed(self) -> tuple[Bools, Bools]:
        """Configurations beyond u_max, and those beyond their memory (6e)."""
        rates = self.shares / MILLI * self.constants.rates[:, None]
        u = utilisation(rates, self.constants.T, self.groups, self.constants.slots)
        in_flight = concurrency(rates, self.constants.T, self.groups)
        cached = self.cached & (self.shares > 0)
        used = memory_tokens(self.instance, in_flight, self.reservation, cached)
        limit = 1 + TOLERANCE
        return np.asarray(u > self.instance.max_utilisation * limit), np.asarray(used > self.capacity * limit)

    def _carrying(self) -> Bools:
        """Where a share brings work, (I, K)."""
        return np.asarray((self.shares > 0) & (self.constants.rates[:, None] * self.constants.T > 0))

    def _relieve(self, k: int) -> None:
        """Take one thousandth off configuration k."""
        i = self._most_over_rounded(k)
        self.shares[i, k] -= 1
        for j in self._most_under_rounded(i, k):
            self.shares[i, j] += 1
            if not self._overloaded()[j]:
                return
            self.shares[i, j] -= 1

    def _most_over_rounded(self, k: int) -> int:
        """A class whose share relieves k: one that holds memory if memory alone is short, else any with work."""
        busy, _ = self._limits_passed()
        carrying = self._carrying()[:, k]
        holding = carrying & (effective_tokens(self.instance, self.reservation, self.cached)[:, k] > 0)
        relieves = carrying if busy[k] or not holding.any() else holding
        return int(np.argmax(np.where(relieves, self.shares[:, k] - self.exact[:, k], -np.inf)))

    def _most_under_rounded(self, i: int, k: int) -> list[int]:
        sanctioned = [j for j in np.flatnonzero(self.exact[i] > 0).tolist() if j != k]
        return sorted(sanctioned, key=lambda j: (self.shares[i, j] - self.exact[i, j], j))
