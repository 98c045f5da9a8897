"""What a solve returns: the incumbent in the original units, with its bound, trace and explanations."""

from dataclasses import replace

import numpy as np

from kvplan_solver.certified.explain import Explainer
from kvplan_solver.certified.scaling import Scaled
from kvplan_solver.certified.search import Search
from kvplan_solver.certified.stopwatch import Stopwatch
from kvplan_solver.cost import Coefficients, evaluate
from kvplan_solver.instance import Instance
from kvplan_solver.packing import place
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

_ROUNDING = 1e-6
_DISTRUSTED = (
    "the bound came out above the cost of a feasible plan and is withdrawn: the numbers of this instance span more "
    "orders of magnitude than the LP can resolve"
)


class Outcome:
    """Turns the state of a search into results.

    Attributes:
        trace: what was found, in order.
    """

    def __init__(self, instance: Instance, options: Options, units: Scaled, search: Search, watch: Stopwatch) -> None:
        self.instance, self.options, self.units = instance, options, units
        self.search, self.bounder, self.watch = search, search.bounder, watch
        self.trace: list[TracePoint] = []

    def record(self, step: str, objective: float) -> None:
        """Add a point to the trace; ``objective`` is scaled."""
        factor = self.units.factor
        self.trace.append(TracePoint(step, objective * factor, self.bounder.bound * factor, self.watch.elapsed))

    def gap(self) -> float:
        """(cost − bound)/cost of the incumbent; inf without one, or where the bound cannot be trusted."""
        best = self.search.best
        if best is None or self._too_high(best.objective):
            return np.inf
        if best.objective <= 0:
            return 0.0
        return max(0.0, (best.objective - self.bounder.bound) / best.objective)

    def _trusted_bound(self, objective: float) -> float:
        """The bound in original units; no bound at all if it exceeds the objective by more than rounding."""
        factor = self.units.factor
        return -np.inf if self._too_high(objective / factor) else float(min(self.bounder.bound * factor, objective))

    def _too_high(self, objective: float) -> bool:
        """Whether the bound exceeds a scaled cost by more than rounding; one request costs hundreds there."""
        return bool(self.bounder.bound > objective + _ROUNDING * (1 + abs(objective)))

    def current(self) -> Result:
        """The incumbent as a result, without explanations."""
        best = self.search.best
        if best is None:
            return self.infeasible()
        placements = place(self.instance, best.groups) or ()
        costs, excess = evaluate(
            Coefficients(self.instance), np.array(best.groups, dtype=np.float64), best.reservation, best.routing
        )
        bound = self._trusted_bound(costs.total)
        return Result(
            method=Method.CERTIFIED,
            status=self._status(),
            groups=best.groups,
            placements=placements,
            reservation_tokens=tuple(int(r) for r in best.reservation),
            routing=best.routing,
            cached=best.cached,
            slo_excess_seconds=tuple(float(s) for s in excess),
            costs=costs,
            lower_bound=bound,
            message="" if np.isfinite(bound) or not np.isfinite(self.bounder.bound) else _DISTRUSTED,
            runner_up=self._runner_up(),
            shift_threshold_tokens=self.search.pricer.curves.shift_thresholds,
            gpu_price=self.bounder.gpu_price * self.units.factor,
            seed=self.options.seed,
            work=self._work(),
            deadline_hit=self.watch.struck,
            trace=tuple(self.trace),
            seconds=dict(self.watch.seconds),
        )

    def _status(self) -> Status:
        """Optimal only for a search that ran its course: a deadline also cuts off the choice of fewest GPUs."""
        finished = self.gap() <= self.options.gap_target and not self.watch.struck
        return Status.OPTIMAL if finished else Status.FEASIBLE

    def final(self) -> Result:
        """The incumbent as a result, explained."""
        result = self.current()
        explainer = Explainer(self.instance, self.units, self.search)
        return replace(
            result,
            binding=explainer.binding(result),
            rejections=explainer.rejections(result),
            memory_prices=explainer.memory_prices(result.groups),
        )

    def _runner_up(self) -> RunnerUp | None:
        second = self.search.second
        return None if second is None else RunnerUp(second.groups, second.objective * self.units.factor)

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
            reservation_tokens=tuple(int(r) for r in self.search.pricer.curves.best), routing=np.zeros(shape),
            cached=np.zeros(shape, dtype=bool), slo_excess_seconds=(0.0,) * shape[0],
            costs=CostParts(0.0, 0.0, 0.0, self.bounder.linear.offset * self.units.factor), lower_bound=-np.inf,
            seed=self.options.seed, infeasible_reason=reason,
            message=f"min_gpus is {self.instance.min_gpus}, the nodes offer {self.instance.gpu_budget} GPUs "
            "in shapes no candidate partition fills: lower min_gpus, add nodes or add configurations",
        )  # fmt: skip
