"""Where there is no plan at all, or none that a RoutingPlan can hold: one message with the field to change.

Inputs: a problem and a result. Output: nothing, or an error. Pure.
"""

from pydantic import ValidationError

from kvplan_operator.model.problem import Problem
from kvplan_solver.errors import BackendError, InvalidInput
from kvplan_solver.result import InfeasibleReason, Result, Status


class NoPlan(InvalidInput):
    """No plan exists, even with every request rejected.

    Attributes:
        reason: why; None where the search does not say.
    """

    def __init__(self, reason: InfeasibleReason | None, subject: str, field: str, value: object, remedy: str) -> None:
        self.reason = reason
        super().__init__(subject, field, value, remedy)


def refuse_without_plan(problem: Problem, result: Result) -> None:
    """Pass over a result that can be written down.

    Raises:
        NoPlan: the result is Infeasible.
        BackendError: the solver failed.
    """
    if result.status is Status.INFEASIBLE:
        raise NoPlan(result.infeasible_reason, f"ServingFleet {problem.fleet.metadata.name}", *_why(problem, result))
    if result.status is Status.ERROR:
        raise BackendError(result.message)


def unwritable(problem: Problem, error: ValidationError) -> InvalidInput:
    """A figure of a plan that the API does not take, such as a cost beyond what JSON carries exactly."""
    first = error.errors()[0]
    field = ".".join(map(str, (error.title, *first["loc"])))
    remedy = f"no RoutingPlan holds that ({first['msg']}): use smaller rates or weights"
    return InvalidInput(f"ServingFleet {problem.fleet.metadata.name}", field, first["input"], remedy)


def _why(problem: Problem, result: Result) -> tuple[str, object, str]:
    """Field, value and remedy."""
    nodes, instance = problem.fleet.spec.nodes, problem.instance
    field, value, free = "spec.nodes.minGpus", nodes.min_gpus, instance.gpu_budget
    if result.infeasible_reason is InfeasibleReason.MIN_GPUS_ABOVE_BUDGET:
        return field, value, f"the fleet may use {free} GPUs: use at most {free}, add nodes or raise maxGpus"
    if result.infeasible_reason is InfeasibleReason.MIN_GPUS_DO_NOT_FIT:
        names = ", ".join(k.name for k in instance.configurations)
        remedy = f"no groups of {names} that fit the nodes have so many GPUs: lower it, or add configurations or nodes"
        return field, value, remedy
    return "spec", "without a plan", result.message or "no set of groups meets every constraint"
