"""The planner: a problem in, a certified RoutingPlan out. It searches, so it loads the solver library when it runs.

Steps of ``make_plan``: (1) solve until speeds and batch agree, shares rounded to thousandths, (2) route what has no
traffic, (3) certify, (4) write the plan. ``assess`` runs (3) on a plan that exists. Inputs: a ``Problem``, solver
options. Output: a frozen ``Planned``. Pure: the clock for a deadline is injected with the options.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from pydantic import ValidationError

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.agreement import MAX_SOLVES, Agreed, agree, priced
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.decision import decision_from_plan
from kvplan_operator.plan.document import routing_plan
from kvplan_operator.plan.forecast import forecast
from kvplan_operator.plan.idle import route_idle_classes
from kvplan_operator.plan.no_plan import refuse_without_plan, unwritable
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.shares import round_result
from kvplan_solver.certificate import certify
from kvplan_solver.fixed_point import solve_with_batch
from kvplan_solver.instance import Instance
from kvplan_solver.result import Options, Result
from kvplan_solver.solve import solve
from kvplan_solver.units import from_milli

_NO_TIME = 1e-9
"""Seconds that stand for a deadline that has passed; a limit of none at all is no limit to the solver."""

__all__ = ["Planned", "assess_plan", "decision_from_plan", "make_plan", "planned_incumbent", "solver_options"]


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


def make_plan(problem: Problem, options: Options, running: RoutingPlan | None = None) -> Planned:
    """The best plan found for a problem.

    Args:
        problem: of a fleet.
        options: of the search.
        running: the plan in force, whose engine flags stay where they would change little; None where none is.

    Raises:
        NoPlan: none exists at all (a floor on GPUs that the nodes cannot meet).
        InvalidInput: a RoutingPlan cannot hold it: costs beyond its integers.
        EnumerationTooLarge: the literal method on too large a set of partitions.
        BackendError: the solver library failed.
    """
    passes = _Passes(options, _solves_expected(problem))
    agreed = agree(problem.instance, problem.curves, passes.solve, options.gap_target)
    result = passes.totalled(agreed.result)
    refuse_without_plan(problem, result)
    return _finished(problem, replace(agreed, result=result), options.gap_target, running)


def planned_incumbent(
    problem: Problem, found: Result, gap_target: float, running: RoutingPlan | None = None
) -> Planned:
    """A decision that a search streamed, as the plan it would make if the search ended there.

    Args:
        problem: of the search.
        found: what ``Options.on_incumbent`` was given; priced anew at the batch it settles at.
        gap_target: as of the search.
        running: as of ``make_plan``.

    Raises:
        InvalidInput: a RoutingPlan cannot hold it.
    """
    settled = solve_with_batch(problem.instance, problem.curves, lambda frozen: priced(frozen, found))
    result, instance, report = settled
    rounded = replace(round_result(instance, result, gap_target), deadline_hit=True)
    return _finished(problem, Agreed(rounded, instance, report), gap_target, running)


def _finished(problem: Problem, agreed: Agreed, gap_target: float, running: RoutingPlan | None) -> Planned:
    instance, result = agreed.instance, route_idle_classes(agreed.instance, agreed.result)
    batches = {point.configuration: point.frozen for point in agreed.report.points}
    return Planned(
        problem=problem,
        instance=instance,
        result=result,
        fixed_point=agreed.report,
        certificate=certify(instance, result, gap_target=gap_target),
        plan=_written(problem, instance, result, batches, running),
    )


def _written(
    problem: Problem, instance: Instance, result: Result, batches: Mapping[str, float], running: RoutingPlan | None
) -> RoutingPlan:
    try:
        return routing_plan(problem, instance, result, forecast(instance, result), batches, running)
    except ValidationError as error:
        raise unwritable(problem, error) from None


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
