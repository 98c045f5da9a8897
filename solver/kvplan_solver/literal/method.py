"""Algorithm 1 (BCD-DRO) as printed: Blocks 1, 2, 3 in turn until neither z nor δ changes.

Kept for comparison and for people who check the planner against the paper. It has no bound, and it sticks:
Block 1 routes only to configurations that have groups, Block 3 keeps only partitions that already carry
today's routing, so the search rarely leaves the neighbourhood of z⁽⁰⁾. Two things the print leaves open
are decided so that Proposition IV.3 (the cost never rises) holds: W is frozen inside LP1, and a block's
answer is taken only if it is feasible and the true cost falls. Reservations are whole KV blocks throughout.
"""

from dataclasses import replace

import numpy as np

from kvplan_solver.cost import evaluate
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Ambiguity, Instance
from kvplan_solver.literal.block1 import alternate
from kvplan_solver.literal.block2 import cache_prefixes
from kvplan_solver.literal.block3 import choose_partition, enumerate_partitions
from kvplan_solver.literal.decision import Decision, Problem
from kvplan_solver.literal.lp2 import ReservationProgram
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.packing import fits, place
from kvplan_solver.result import CostParts, InfeasibleReason, Method, Options, Result, Status, TracePoint

_ITERATIONS = 50


def solve_literal(instance: Instance, options: Options) -> Result:
    """Run Algorithm 1.

    Args:
        instance: the problem; its ambiguity set must be Wasserstein1.
        options: ``initial_groups`` is z⁽⁰⁾ (None: one group of each configuration in turn while they
            fit), ``effort`` multiplies T_max, ``clock`` and ``deadline_seconds`` stop it early;
            ``gap_target``, ``seed`` and ``warm_start`` mean nothing here.

    Returns:
        A feasible result with lower bound -inf and the objective after every accepted step as its trace,
        or Infeasible when no partition meets ``min_gpus``.

    Raises:
        InvalidInput: another ambiguity set, or a z⁽⁰⁾ that cannot be deployed.
        EnumerationTooLarge: Z is too large for Block 3.
    """
    if instance.ambiguity is not Ambiguity.WASSERSTEIN_1:
        raise InvalidInput(
            "literal method", "ambiguity", instance.ambiguity.value,
            "Algorithm 1 knows Wasserstein1 only: use that, or the certified method",
        )  # fmt: skip
    run = _Run(instance, options)
    groups = run.initial_groups()
    return run.infeasible() if groups is None else run.iterate(run.problem.start(groups))


class _Run:
    """One run: the kept model, the list Z, the trace and the clock."""

    def __init__(self, instance: Instance, options: Options) -> None:
        self.instance, self.options = instance, options
        self.problem = Problem(instance)
        self.partitions = enumerate_partitions(instance)
        self.trace: list[TracePoint] = []
        self.work = {"iterations": 0, "linearProgramSteps": 0, "partitions": len(self.partitions)}
        self.thresholds = tuple(robust_order(c, instance.ambiguity).shift_threshold_tokens for c in instance.classes)
        self.started = options.clock() if options.clock else 0.0

    def initial_groups(self) -> tuple[int, ...] | None:
        """z⁽⁰⁾: the option, or one group of each configuration in turn while they fit."""
        if self.options.initial_groups is not None:
            return self._checked(self.options.initial_groups)
        groups = self._spread()
        if fits(self.instance, groups):
            return groups
        # Only min_gpus can forbid it: look for any partition that meets it.
        counts = (tuple(int(n) for n in row) for row in self.partitions)
        return next((z for z in counts if fits(self.instance, z)), None)

    def _checked(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        right_length = len(groups) == len(self.instance.configurations)
        if not right_length or not fits(self.instance, groups):
            raise InvalidInput(
                "options", "initial_groups", groups,
                f"give one count for each of {len(self.instance.configurations)} configurations, "
                f"within {self.instance.gpu_budget} GPUs and placeable on the nodes",
            )  # fmt: skip
        return groups

    def _spread(self) -> tuple[int, ...]:
        unfloored = replace(self.instance, min_gpus=0)
        groups, added = (0,) * len(self.instance.configurations), True
        while added:
            added = False
            for k in range(len(groups)):
                more = (*groups[:k], groups[k] + 1, *groups[k + 1 :])
                if fits(unfloored, more):
                    groups, added = more, True
        return groups

    def iterate(self, at: Decision) -> Result:
        """Lines 2-9: the three blocks until (z, δ) repeats, or T_max."""
        self._report("start", at)
        reservations = ReservationProgram(self.problem)
        for _ in range(_ITERATIONS * self.options.effort):
            self.work["iterations"] += 1
            before = at
            at = alternate(self.problem, reservations, at, self._report, self._time_left)
            at = self._reported("block 2", at, cache_prefixes(self.problem, at))
            at = self._reported("block 3", at, choose_partition(self.problem, self.partitions, at))
            same = at.groups == before.groups and np.array_equal(at.cached, before.cached)
            if same or self._out_of_time():
                break
        return self._result(at)

    def _reported(self, step: str, before: Decision, after: Decision) -> Decision:
        if after is not before:
            self._report(step, after)
        return after

    def _report(self, step: str, at: Decision) -> None:
        self.work["linearProgramSteps"] += step.startswith("LP")
        self.trace.append(TracePoint(step, at.objective, -np.inf, self._elapsed()))
        if self.options.on_incumbent is not None:
            self.options.on_incumbent(self._result(at))

    def _elapsed(self) -> float | None:
        return self.options.clock() - self.started if self.options.clock else None

    def _time_left(self) -> float | None:
        elapsed, deadline = self._elapsed(), self.options.deadline_seconds
        return None if elapsed is None or deadline is None else max(0.0, deadline - elapsed)

    def _out_of_time(self) -> bool:
        return self._time_left() == 0.0

    def _result(self, at: Decision) -> Result:
        costs, excess = evaluate(self.problem.constants, at.z, at.reservation, at.routing)
        elapsed = self._elapsed()
        return Result(
            method=Method.LITERAL,
            status=Status.FEASIBLE,
            groups=at.groups,
            placements=place(self.instance, at.groups) or (),
            reservation_tokens=tuple(int(r) for r in at.reservation),
            routing=at.routing,
            cached=at.cached,
            slo_excess_seconds=tuple(float(s) for s in excess),
            costs=costs,
            lower_bound=-np.inf,
            shift_threshold_tokens=self.thresholds,
            seed=self.options.seed,
            work=dict(self.work),
            deadline_hit=self._out_of_time(),
            trace=tuple(self.trace),
            seconds={} if elapsed is None else {"total": elapsed},
        )

    def infeasible(self) -> Result:
        """No partition meets ``min_gpus``."""
        shape = (len(self.instance.classes), len(self.instance.configurations))
        above = self.instance.min_gpus > self.instance.gpu_budget
        reason = InfeasibleReason.MIN_GPUS_ABOVE_BUDGET if above else InfeasibleReason.MIN_GPUS_DO_NOT_FIT
        return Result(
            method=Method.LITERAL,
            status=Status.INFEASIBLE,
            groups=(0,) * shape[1],
            placements=(),
            reservation_tokens=tuple(0 for _ in self.instance.classes),
            routing=np.zeros(shape),
            cached=np.zeros(shape, dtype=np.bool_),
            slo_excess_seconds=(0.0,) * shape[0],
            costs=CostParts(0.0, 0.0, 0.0, 0.0),
            lower_bound=-np.inf,
            infeasible_reason=reason,
            message=f"min_gpus is {self.instance.min_gpus} but no partition of {self.instance.gpu_budget} "
            "GPUs reaches it: lower min_gpus, add nodes or add configurations",
        )
