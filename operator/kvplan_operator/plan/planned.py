"""A plan with everything that explains it: problem, instance, decision, certificate and forecast.

Made by ``planner`` from a search or by ``assess`` from a plan that exists. Pure data; knows no solver library.
"""

from dataclasses import dataclass

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.derived import Difference
from kvplan_operator.plan.forecast import Forecast, forecast
from kvplan_solver.certificate import Certificate
from kvplan_solver.fixed_point import FixedPointReport
from kvplan_solver.instance import Instance
from kvplan_solver.result import Result


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
