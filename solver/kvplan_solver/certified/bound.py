"""Lower bound: tighten the LP relaxation by cuts, then let HiGHS branch on z (02-solver §3, step 2).

Every bound reported here is a proven one: the dual bound of a relaxation of the whole problem.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.backends.highs import Solution
from kvplan_solver.certified.relaxation import Relaxation
from kvplan_solver.instance import Floats

_CUT_PASSES = 25
_MILP_PASSES = 4
_CELL_PASSES = 4


@dataclass(frozen=True, eq=False)
class Candidate:
    """An integer partition suggested by a relaxation, with rates to start from."""

    groups: tuple[int, ...]
    rates: Floats


class Bounder:
    """Holds the LP (for cuts and fixed partitions) and the MILP (for z)."""

    def __init__(self, linear: Relaxation, integer: Relaxation, out_of_time: Callable[[], bool]) -> None:
        self.linear, self.integer, self.out_of_time = linear, integer, out_of_time
        self.bound = -np.inf
        self.gpu_price = 0.0

    def root(self) -> Candidate | None:
        """The converged LP relaxation; its rounded-down z is the first candidate. None if infeasible."""
        self.linear.free_groups()
        solution = self._converge()
        if solution is None:
            return None
        self._raise(solution.objective)
        duals = solution.duals
        self.gpu_price = max(0.0, -sum(float(duals[row]) / size for row, size in self.linear.gpu_rows.items()))
        z = np.floor(self.linear.groups_of(solution.values) + 1e-6).astype(int)
        return Candidate(tuple(z.tolist()), self.linear.rates_of(solution.values))

    def branch(self, node_limit: int, relative_gap: float, time_limit: float | None) -> list[Candidate]:
        """Solve the MILP, add the cuts its solution violates, repeat while the bound rises."""
        found: list[Candidate] = []
        for _ in range(_MILP_PASSES):
            self.linear.copy_cuts_to(self.integer)
            solution = self.integer.solve(node_limit=node_limit, relative_gap=relative_gap, time_limit=time_limit)
            self._raise(solution.bound)
            if not solution.feasible:
                break
            z = np.rint(self.integer.groups_of(solution.values)).astype(int)
            found.append(Candidate(tuple(z.tolist()), self.integer.rates_of(solution.values)))
            if self.out_of_time():
                break
            before = self.linear.work["cuts"]
            fixed = self.at(found[-1].groups)
            if fixed is None or self.linear.work["cuts"] == before:
                break
            rise = fixed.objective - solution.bound
            if rise <= relative_gap * abs(solution.bound):
                break
        return found

    def refine(
        self, edges: Floats, node_limit: int, relative_gap: float, time_limit: float | None
    ) -> Iterator[Candidate]:
        """Bound again with waiting cells; yields the partition each pass suggests, the bound raised before.

        Args:
            edges: of the cells, seconds, (K, C+1).
            node_limit: branch-and-bound nodes per pass.
            relative_gap: where a pass may stop.
            time_limit: seconds per pass; None for none.
        """
        cells = Relaxation(self.linear.constants, self.linear.curves, integer=True, edges=edges)
        for _ in range(_CELL_PASSES):
            self.linear.copy_cuts_to(cells)
            solution = cells.solve(node_limit=node_limit, relative_gap=relative_gap, time_limit=time_limit)
            self.integer.work["nodes"] += solution.nodes
            self._raise(solution.bound)
            if not solution.feasible:
                return
            z = np.rint(cells.groups_of(solution.values)).astype(int)
            yield Candidate(tuple(z.tolist()), cells.rates_of(solution.values))
            if self.out_of_time() or not cells.tighten(solution.values):
                return

    def leanest(self, limit: float, node_limit: int) -> Candidate | None:
        """The partition with the fewest GPUs whose relaxed cost is within ``limit``; None if none was found."""
        self.linear.copy_cuts_to(self.integer)
        solution = self.integer.fewest_gpus(limit, node_limit)
        if not solution.feasible:
            return None
        z = np.rint(self.integer.groups_of(solution.values)).astype(int)
        return Candidate(tuple(z.tolist()), self.integer.rates_of(solution.values))

    def at(self, groups: tuple[int, ...]) -> Solution | None:
        """The LP relaxation with z fixed, converged; its objective bounds every plan with that partition."""
        self.linear.fix_groups(np.array(groups, dtype=np.int64))
        return self._converge()

    def _converge(self) -> Solution | None:
        """Solve and cut until nothing is violated (or the pass limit, or no time is left); None if infeasible."""
        solution = self.linear.solve()
        for _ in range(_CUT_PASSES):
            if not solution.optimal:
                return None
            if self.out_of_time() or not self.linear.tighten(solution.values):
                return solution
            solution = self.linear.solve()
        return solution if solution.optimal else None

    def _raise(self, bound: float) -> None:
        if np.isfinite(bound):
            self.bound = max(self.bound, bound + self.linear.offset)


def group_prices(relaxation: Relaxation, solution: Solution) -> NDArray[np.float64]:
    """Subgradient of the fixed-z optimum in z, (K,): that optimum is convex in z, so it bounds neighbours."""
    return np.asarray(solution.reduced_costs[relaxation.columns.z : relaxation.columns.slack])
