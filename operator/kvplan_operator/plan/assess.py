"""Any RoutingPlan, judged: priced and certified on a problem, with the same outcome as one the planner makes.

Inputs: a RoutingPlan of the planner or of people, the ``Problem`` of its fleet. Output: a frozen ``Planned``. Runs
where plans are gated, so it must not search: it loads no solver library unless a plan without placements needs the
packing MILP to be placed (02-solver §5). Pure.
"""

from dataclasses import replace

import numpy as np

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.binding import binding_constraints
from kvplan_operator.plan.decision import decision_from_plan
from kvplan_operator.plan.derived import differences
from kvplan_operator.plan.document import planned_batches
from kvplan_operator.plan.planned import Planned
from kvplan_solver.batch import implied_batch
from kvplan_solver.certificate import certify
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
from kvplan_solver.result import Result

DRIFT = 0.05
"""Noise of measured rates that breaks no plan: one that fills a group's memory would never outlive its own solve."""


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
    return Planned(problem, instance, result, report, certify(instance, result, drift=DRIFT), plan, wrong)


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
