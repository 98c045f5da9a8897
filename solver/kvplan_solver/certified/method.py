"""The certified method, top to bottom: bound, candidates, polish, local search, result (02-solver §3).

``solve_certified(instance, options) -> Result``. Stops on counted work; the injected clock is a safety stop
only. Every incumbent is feasible and streamed.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.certified.bound import Bounder, Candidate
from kvplan_solver.certified.cells import CELL_PASSES, CELLS
from kvplan_solver.certified.curves import ReservationCurves
from kvplan_solver.certified.decision import Decision, Pricer
from kvplan_solver.certified.outcome import Outcome
from kvplan_solver.certified.polish import Polisher
from kvplan_solver.certified.relaxation import Relaxation
from kvplan_solver.certified.scaling import Scaled, scale
from kvplan_solver.certified.search import Search
from kvplan_solver.certified.stopwatch import Stopwatch
from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.packing import any_partition, fits, most_groups
from kvplan_solver.queueing import waiting_seconds
from kvplan_solver.result import Options, Result

_NODES = 400
_CELL_NODES = 300
_MOST_CELL_COLUMNS = 800
_REJECTED = 1e-6
_MOST_FINISHED_PAIRS = 1_000
"""Beyond these, dropping groups that do not pay and the last fractions of a per cent cost more than they are worth."""
_SEARCH_WORK = 120_000  # linear programs × pairs


def solve_certified(instance: Instance, options: Options) -> Result:
    """The best plan found, with a proven lower bound on every plan.

    Args:
        instance: the problem.
        options: gap target, effort, seed, clock and callbacks.

    Returns:
        A result with status Optimal (gap target met), Feasible, or Infeasible with a reason.
    """
    watch = Stopwatch(options.clock, options.deadline_seconds)
    first = _solve(instance, options, watch, scale(instance, cap=True))
    if not first.rejects_capped or watch.out_of_time():
        return first.result
    # Weights of rejection far above any service were lowered, and yet something is rejected: count it in full.
    again = replace(options, warm_start=first.result)
    second = _solve(instance, again, watch, scale(instance, cap=False)).result
    better = min(second, first.result, key=lambda result: result.objective)
    bounds = [r.lower_bound for r in (first.result, second) if r.lower_bound <= better.objective]
    return replace(better, lower_bound=max(bounds, default=-np.inf))


@dataclass(frozen=True)
class _Solved:
    result: Result
    rejects_capped: bool


def _solve(instance: Instance, options: Options, watch: Stopwatch, units: Scaled) -> _Solved:
    run = _Run(instance, options, watch, units)
    if not run.start():
        return _Solved(run.outcome.infeasible(), rejects_capped=False)
    run.branch()
    run.improve()
    result = run.outcome.final()
    return _Solved(result, bool(np.any(units.capped * result.rejected > _REJECTED)))


class _Run:
    """State of one solve."""

    def __init__(self, instance: Instance, options: Options, watch: Stopwatch, units: Scaled) -> None:
        self.instance, self.options, self.watch = instance, options, watch
        constants = Coefficients(units.instance)
        curves = ReservationCurves(units.instance)
        self.constants = constants
        self.bounder = Bounder(
            Relaxation(constants, curves, integer=False),
            Relaxation(constants, curves, integer=True),
            watch.out_of_time,
        )
        pricer = Pricer(constants, curves)
        polisher = Polisher(self.bounder.linear, pricer, watch.out_of_time)
        self.search = Search(units.instance, self.bounder, pricer, polisher, self._report, watch.out_of_time)
        self.outcome = Outcome(instance, options, units, self.search, watch)
        watch.lap("closedForm")

    def _report(self, decision: Decision) -> None:
        self.outcome.record("incumbent", decision.objective)
        if self.options.on_incumbent:
            self.options.on_incumbent(self.outcome.current())

    def _gap_met(self) -> bool:
        return self.outcome.gap() <= self.options.gap_target

    def start(self) -> bool:
        """Root relaxation and the first incumbents; False when no partition exists."""
        self.search.consider_nothing()
        root = self.bounder.root()
        if root is None:
            return False
        for candidate in (*self._warm_groups(), self._fitting(root)):
            self.search.consider(candidate)
        if self.search.best is None:
            # Chunk rows are only necessary: a floor on GPUs may leave no rounded partition that fits the nodes.
            self.search.consider(any_partition(self.instance) or ())
        self.watch.lap("root")
        return self.search.best is not None

    def _warm_groups(self) -> list[tuple[int, ...]]:
        """Partitions worth trying first: the previous plan's and the one that runs."""
        warm, count = self.options.warm_start, len(self.instance.configurations)
        fits_shape = warm is not None and np.shape(warm.groups) == (count,) and bool(np.all(np.isfinite(warm.groups)))
        known = [tuple(int(z) for z in warm.groups)] if warm is not None and fits_shape else []
        return [*known, self.instance.running_counts]

    def _fitting(self, candidate: Candidate) -> tuple[int, ...]:
        """The candidate's z, with its largest groups dropped until the rest fits the nodes."""
        groups = [min(z, int(most)) for z, most in zip(candidate.groups, most_groups(self.instance), strict=True)]
        order = sorted(range(len(groups)), key=lambda k: (-self.instance.configurations[k].gpus, k))
        while not fits(self.instance, groups) and any(groups):
            largest = next(k for k in order if groups[k])
            groups[largest] -= 1
        return tuple(groups)

    def branch(self) -> None:
        """The integer bound and its partitions."""
        if self._gap_met() or self.watch.out_of_time():
            return
        gap = self._relative_gap(self.search.best.objective if self.search.best else 1.0)
        found = self.bounder.branch(_NODES * self.options.effort, gap, self.watch.left)
        for candidate in found:
            self.search.consider(self._fitting(candidate), candidate.rates)
        if self.search.best is not None:
            self.outcome.record("bound", self.search.best.objective)
        self.watch.lap("branch")

    def _relative_gap(self, objective: float) -> float:
        """A quarter of the gap target, in terms of the program's own objective, which lacks an offset."""
        own = max(1e-9, abs(objective - self.bounder.linear.offset))
        return self.options.gap_target / 4 * objective / own

    def improve(self) -> None:
        """Local search, a tighter bound where that is affordable, then drop groups that do not pay."""
        self.search.climb(_SEARCH_WORK * self.options.effort, self._gap_met)
        if not self._gap_met() and not self.watch.out_of_time():
            self._refine_bound()
            self.outcome.record("refined bound", self.search.best.objective if self.search.best else np.inf)
        self.watch.lap("search")
        if self.bounder.linear.columns.pairs <= _MOST_FINISHED_PAIRS:
            self.search.trim()
            self.search.finish()
        self.watch.lap("finish")

    def _refine_bound(self) -> None:
        """Waiting cells, where latency costs something and the problem is small."""
        if self.bounder.linear.columns.pairs * CELLS > _MOST_CELL_COLUMNS:
            return
        for edges_at in CELL_PASSES:
            best = self.search.best
            if best is None or best.costs.latency <= 0:
                return
            gap, edges = self._relative_gap(best.objective), edges_at(self.constants, self._waiting(best))
            nodes = _CELL_NODES * self.options.effort
            for candidate in self.bounder.refine(edges, nodes, gap, self.watch.left):
                self.search.consider(self._fitting(candidate), candidate.rates)
                if self._gap_met() or self.watch.out_of_time():
                    return

    def _waiting(self, decision: Decision) -> Floats:
        c = self.constants
        z = np.array(decision.groups, dtype=np.float64)
        return waiting_seconds(decision.routing * c.rates[:, None], c.T, z, c.slots, c.v)
