"""The certified method, top to bottom: bound, candidates, polish, local search, result (02-solver §3).

``solve_certified(instance, options) -> Result``. Stops on counted work; the injected clock is a safety stop
only. Every incumbent is feasible and streamed.
"""

from dataclasses import replace

import numpy as np

from kvplan_solver.certified.bound import Bounder, Candidate
from kvplan_solver.certified.cells import CELLS, COARSE, FINE, cell_edges
from kvplan_solver.certified.curves import ReservationCurves
from kvplan_solver.certified.decision import Decision, Pricer
from kvplan_solver.certified.explain import Explainer
from kvplan_solver.certified.polish import Polisher
from kvplan_solver.certified.relaxation import Relaxation
from kvplan_solver.certified.scaling import cost_scale, scaled
from kvplan_solver.certified.search import Search
from kvplan_solver.certified.stopwatch import Stopwatch
from kvplan_solver.cost import Coefficients, evaluate
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.packing import fits, place
from kvplan_solver.queueing import waiting_seconds
from kvplan_solver.result import (
    CostParts,
    InfeasibleReason,
    Method,
    Options,
    Result,
    RunnerUp,
    Status,
    TracePoint,
)

_NODES = 400
_CELL_NODES = 300
_MOST_CELL_COLUMNS = 800
_SEARCH_WORK = 120_000  # linear programs × pairs


def solve_certified(instance: Instance, options: Options) -> Result:
    """The best plan found, with a proven lower bound on every plan.

    Args:
        instance: the problem.
        options: gap target, effort, seed, clock and callbacks.

    Returns:
        A result with status Optimal (gap target met), Feasible, or Infeasible with a reason.
    """
    run = _Run(instance, options)
    if not run.start():
        return run.infeasible()
    run.branch()
    run.improve()
    return run.result(final=True)


class _Run:
    """State of one solve."""

    def __init__(self, instance: Instance, options: Options) -> None:
        self.instance, self.options = instance, options
        self.watch = Stopwatch(options.clock, options.deadline_seconds)
        self.trace: list[TracePoint] = []
        self.scale = cost_scale(instance)
        constants = Coefficients(scaled(instance, self.scale))
        self.curves = ReservationCurves(constants.instance)
        self.constants = constants
        self.bounder = Bounder(
            Relaxation(constants, self.curves, integer=False), Relaxation(constants, self.curves, integer=True)
        )
        self.pricer = Pricer(constants, self.curves)
        polisher = Polisher(self.bounder.linear, self.pricer)
        self.search = Search(
            constants.instance, self.bounder, self.pricer, polisher, self._report, self.watch.out_of_time
        )
        self.watch.lap("closedForm")

    def _report(self, decision: Decision) -> None:
        self._record("incumbent", decision.objective)
        if self.options.on_incumbent:
            self.options.on_incumbent(self.result(final=False))

    def _record(self, step: str, objective: float) -> None:
        bound = self.bounder.bound * self.scale
        self.trace.append(TracePoint(step, objective * self.scale, bound, self.watch.elapsed))

    def _gap(self) -> float:
        best = self.search.best
        if best is None:
            return np.inf
        if best.objective <= 0:
            return 0.0
        return max(0.0, (best.objective - self.bounder.bound) / best.objective)

    def _gap_met(self) -> bool:
        return self._gap() <= self.options.gap_target

    def start(self) -> bool:
        """Root relaxation and the first incumbents; False when no partition exists."""
        self.search.consider_nothing()
        root = self.bounder.root()
        if root is None:
            return False
        for candidate in (*self._warm_groups(), self._fitting(root)):
            self.search.consider(candidate)
        self.watch.lap("root")
        return True

    def _warm_groups(self) -> list[tuple[int, ...]]:
        """Partitions worth trying first: the previous plan's and the one that runs."""
        warm, count = self.options.warm_start, len(self.instance.configurations)
        known = [warm.groups] if warm is not None and len(warm.groups) == count else []
        return [*known, self.instance.running_counts]

    def _fitting(self, candidate: Candidate) -> tuple[int, ...]:
        """The candidate's z, with its largest groups dropped until the rest fits the nodes."""
        groups = list(candidate.groups)
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
            self._record("bound", self.search.best.objective)
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
            self._record("refined bound", self.search.best.objective if self.search.best else np.inf)
        self.search.trim()
        self.search.finish()
        self.watch.lap("search")

    def _refine_bound(self) -> None:
        """Waiting cells, where latency costs something and the problem is small."""
        if self.bounder.linear.columns.pairs * CELLS > _MOST_CELL_COLUMNS:
            return
        for factors in (COARSE, FINE):
            best = self.search.best
            if best is None or best.costs.latency <= 0:
                return
            gap, edges = self._relative_gap(best.objective), cell_edges(self.constants, self._waiting(best), factors)
            nodes = _CELL_NODES * self.options.effort
            for candidate in self.bounder.refine(edges, nodes, gap, self.watch.left):
                self.search.consider(self._fitting(candidate), candidate.rates)
                if self._gap_met() or self.watch.out_of_time():
                    return

    def _waiting(self, decision: Decision) -> Floats:
        c = self.constants
        z = np.array(decision.groups, dtype=np.float64)
        return waiting_seconds(decision.routing * c.rates[:, None], c.T, z, c.slots, c.v)

    def result(self, *, final: bool) -> Result:
        """The incumbent as a result; explanations only in the final one."""
        best = self.search.best
        if best is None:
            return self.infeasible()
        placements = place(self.instance, best.groups) or ()
        costs, excess = evaluate(
            Coefficients(self.instance), np.array(best.groups, dtype=np.float64), best.reservation, best.routing
        )
        result = Result(
            method=Method.CERTIFIED,
            status=Status.OPTIMAL if self._gap_met() else Status.FEASIBLE,
            groups=best.groups,
            placements=placements,
            reservation_tokens=tuple(int(r) for r in best.reservation),
            routing=best.routing,
            cached=best.cached,
            slo_excess_seconds=tuple(float(s) for s in excess),
            costs=costs,
            lower_bound=float(min(self.bounder.bound * self.scale, costs.total)),
            runner_up=self._runner_up(),
            shift_threshold_tokens=self.curves.shift_thresholds,
            gpu_price=self.bounder.gpu_price * self.scale,
            seed=self.options.seed,
            work=self._work(),
            deadline_hit=self.watch.struck,
            trace=tuple(self.trace),
            seconds=dict(self.watch.seconds),
        )
        return self._explained(result) if final else result

    def _explained(self, result: Result) -> Result:
        explainer = Explainer(self.constants, self.curves, self.bounder, self.scale)
        return replace(
            result,
            binding=explainer.binding(result),
            rejections=explainer.rejections(result),
            memory_prices=explainer.memory_prices(result.groups),
        )

    def _runner_up(self) -> RunnerUp | None:
        second = self.search.second
        return None if second is None else RunnerUp(second.groups, second.objective * self.scale)

    def _work(self) -> dict[str, int]:
        linear, integer = self.bounder.linear.work, self.bounder.integer.work
        return {
            "cuts": linear["cuts"],
            "evaluations": self.search.evaluated,
            "linearPrograms": linear["solves"],
            "nodes": integer["nodes"],
            "polishSteps": self.search.polisher.steps,
        }

    def infeasible(self) -> Result:
        """No partition exists: only a floor on GPUs can cause that."""
        shape = (len(self.instance.classes), len(self.instance.configurations))
        short = self.instance.min_gpus > self.instance.gpu_budget
        reason = InfeasibleReason.MIN_GPUS_ABOVE_BUDGET if short else InfeasibleReason.MIN_GPUS_DO_NOT_FIT
        return Result(
            method=Method.CERTIFIED, status=Status.INFEASIBLE, groups=(0,) * shape[1], placements=(),
            reservation_tokens=tuple(int(r) for r in self.curves.best), routing=np.zeros(shape),
            cached=np.zeros(shape, dtype=bool), slo_excess_seconds=(0.0,) * shape[0],
            costs=CostParts(0.0, 0.0, 0.0, self.bounder.linear.offset * self.scale), lower_bound=-np.inf,
            seed=self.options.seed, infeasible_reason=reason,
            message=f"min_gpus is {self.instance.min_gpus}, the nodes offer {self.instance.gpu_budget} GPUs "
            "in shapes no candidate partition fills: lower min_gpus, add nodes or add configurations",
        )  # fmt: skip
