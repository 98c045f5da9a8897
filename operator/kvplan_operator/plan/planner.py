"""The planner: a problem in, a certified RoutingPlan out; and any RoutingPlan in, judged the same way.

Steps of ``make_plan``: (1) solve until speeds and batch agree, shares rounded to thousandths, (2) route what has no
traffic, (3) certify, (4) write the plan. ``assess_plan`` runs (3) on a plan that exists. Inputs: a ``Problem``, solver
options. Output: a frozen ``Planned``. Pure: the clock for a deadline is injected with the options.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from pydantic import ValidationError

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.agreement import MAX_SOLVES, agree
from kvplan_operator.plan.binding import binding_constraints
from kvplan_operator.plan.decision import decision_from_plan
from kvplan_operator.plan.derived import Difference, differences
from kvplan_operator.plan.document import planned_batches, routing_plan
from kvplan_operator.plan.forecast import Forecast, forecast
from kvplan_operator.plan.idle import route_idle_classes
from kvplan_operator.plan.no_plan import refuse_without_plan, unwritable
from kvplan_solver.batch import implied_batch
from kvplan_solver.certificate import Certificate, certify
from kvplan_solver.fixed_point import (
    ASSUMED_BATCH,
    TOLERANCE,
    BatchPoint,
    FixedPointOptions,
    FixedPointReport,
    freeze,
    solve_with_batch,
)
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.result import Options, Result
from kvplan_solver.solve import solve
from kvplan_solver.units import from_milli

_NO_TIME = 1e-9
"""Seconds that stand for a deadline that has passed; a limit of none at all is no limit to the solver."""

__all__ = ["Planned", "assess_plan", "decision_from_plan", "make_plan", "solver_options"]


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan with everything that explains it.

    Attributes:
        problem: what it is for.
        instance: the problem at the frozen speeds that result and certificate refer to.
        result: the decision in the solver's terms, shares in thousandths.
        fixed_point: how well batch and plan agree.
        certificate: holds, or names every broken rule.
        plan: the RoutingPlan.
        differences: figures of the plan that do not follow from its decision; none where the planner made it.
    """

    problem: Problem
    instance: Instance
    result: Result
    fixed_point: FixedPointReport
    certificate: Certificate
    plan: RoutingPlan
    differences: tuple[Difference, ...] = ()

    @property
    def forecast(self) -> Forecast:
        """Load, waiting and response under the plan."""
        return forecast(self.instance, self.result)


def solver_options(
    fleet: ServingFleet,
    *,
    clock: Callable[[], float] | None = None,
    on_incumbent: Callable[[Result], None] | None = None,
) -> Options:
    """Solver options from ``spec.solver``; without a clock there is no deadline and no timing."""
    wanted = fleet.spec.solver
    return Options(
        method=wanted.method,
        gap_target=from_milli(wanted.gap_target_milli),
        deadline_seconds=float(wanted.time_limit_seconds) if clock else None,
        clock=clock,
        on_incumbent=on_incumbent,
    )


def make_plan(problem: Problem, options: Options) -> Planned:
    """The best plan found for a problem.

    Raises:
        NoPlan: none exists at all (a floor on GPUs that the nodes cannot meet).
        InvalidInput: a RoutingPlan cannot hold it: costs beyond its integers.
        EnumerationTooLarge: the literal method on too large a set of partitions.
        BackendError: the solver library failed.
    """
    passes = _Passes(options, _solves_expected(problem))
    agreed = agree(problem.instance, problem.curves, passes.solve, options.gap_target)
    instance, result = agreed.instance, passes.totalled(agreed.result)
    refuse_without_plan(problem, result)
    result = route_idle_classes(instance, result)
    batches = {point.configuration: point.frozen for point in agreed.report.points}
    return Planned(
        problem=problem,
        instance=instance,
        result=result,
        fixed_point=agreed.report,
        certificate=certify(instance, result, gap_target=options.gap_target),
        plan=_written(problem, instance, result, batches),
    )


def _written(problem: Problem, instance: Instance, result: Result, batches: Mapping[str, float]) -> RoutingPlan:
    try:
        return routing_plan(problem, instance, result, forecast(instance, result), batches)
    except ValidationError as error:
        raise unwritable(problem, error) from None


def assess_plan(plan: RoutingPlan, problem: Problem) -> Planned:
    """An existing plan, priced and certified on a problem.

    The speeds are those of the batch the plan was priced at, unless the plan implies a larger (slower) one;
    then, and where it names none, those of the batch that its routing settles at.

    Raises:
        InvalidInput: the plan is for another fleet, or its classes or configurations are not the problem's.
    """
    result, instance, report = _at_its_own_batch(plan, problem)
    result = replace(result, binding=binding_constraints(instance, result))
    stated = _stated_batch(plan, problem)
    made_at = () if stated is None else (freeze(problem.instance, problem.curves, stated),)
    wrong = differences(plan, problem, result, (instance, *made_at))
    return Planned(problem, instance, result, report, certify(instance, result), plan, wrong)


def _solves_expected(problem: Problem) -> int:
    """One where no speed depends on the batch."""
    return 1 if all(curve.batch.size == 1 for curve in problem.curves.values()) else MAX_SOLVES


class _Passes:
    """The solves of one fixed point: each starts from the one before, all share one deadline."""

    def __init__(self, options: Options, expected: int) -> None:
        self.options, self.last, self.left = options, options.warm_start, expected
        self.began = options.clock() if options.clock else 0.0
        self.work: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}

    def solve(self, instance: Instance) -> Result:
        """One pass."""
        found = solve(instance, replace(self.options, warm_start=self.last, deadline_seconds=self._time_left()))
        self.last = found
        self.work.update(found.work)
        for phase, seconds in found.seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        return found

    def totalled(self, result: Result) -> Result:
        """The result with the work and time of all passes."""
        return replace(result, work=dict(self.work), seconds=dict(self.seconds))

    def _time_left(self) -> float | None:
        """An equal part of what is left for each solve that may still come."""
        limit, clock = self.options.deadline_seconds, self.options.clock
        if limit is None or clock is None:
            return limit
        solves, self.left = max(1, self.left), self.left - 1
        return max(_NO_TIME, limit - (clock() - self.began)) / solves


def _at_its_own_batch(plan: RoutingPlan, problem: Problem) -> tuple[Result, Instance, FixedPointReport]:
    """The decision at the batch it was priced at, else at the one its routing settles at."""

    def decide(instance: Instance) -> Result:
        return decision_from_plan(plan, problem, instance)

    stated = _stated_batch(plan, problem)
    if stated is not None:
        instance = freeze(problem.instance, problem.curves, stated)
        result = decide(instance)
        report = _report(problem, instance, result, stated)
        if all(point.implied <= point.frozen * (1 + TOLERANCE) for point in report.points):
            return result, instance, report
    return solve_with_batch(problem.instance, problem.curves, decide)


def _stated_batch(plan: RoutingPlan, problem: Problem) -> Floats | None:
    """The batches the plan's annotation names; None unless it names all that its groups need."""
    batches = planned_batches(plan)
    needed = {g.configuration for g in plan.spec.groups if g.replicas} & set(problem.curves)
    if not needed or not needed <= set(batches):
        return None
    configurations = problem.instance.configurations
    return np.array([min(float(k.max_sequences), batches.get(k.name, ASSUMED_BATCH)) for k in configurations])


def _report(problem: Problem, instance: Instance, result: Result, batch: Floats) -> FixedPointReport:
    """How far the stated batches are from what the plan implies."""
    implied = implied_batch(instance, result)
    points = tuple(
        BatchPoint(k.name, float(batch[n]), float(implied[n]), assumed=False)
        for n, k in enumerate(instance.configurations)
        if k.name in problem.curves and result.groups[n]
    )
    residual = max((abs(point.implied - point.frozen) / point.frozen for point in points), default=0.0)
    return FixedPointReport(0, residual <= TOLERANCE, residual, (residual,), points, FixedPointOptions())
