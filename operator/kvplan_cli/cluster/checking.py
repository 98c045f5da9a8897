"""Whether a plan of a cluster may be accepted: by what the operator said of it, and by its certificate today.

Inputs: a session, the fleet, a plan. Output: nothing, or an error with what is wrong. Where the problem cannot be built
from here (no permission to read nodes, no rate known) that is told, and the operator's own check decides.
"""

from kvplan_cli.cluster.ground import live_problem
from kvplan_cli.cluster.reading import FleetView
from kvplan_cli.cluster.refusals import is_forbidden
from kvplan_cli.cluster.session import Session
from kvplan_cli.errors import CommandError
from kvplan_cli.output import note
from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.errors import KubeError
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.judged import judge_plan
from kvplan_operator.plan.standing import condition_of
from kvplan_solver.errors import SolverError

_REMEDY = "accept another (kvplan history lists them), or make a new one"


async def check_plan(session: Session, view: FleetView, plan: RoutingPlan) -> None:
    """Refuse a plan that breaks a constraint.

    Raises:
        CommandError: with the first thing that is wrong and the remedy.
    """
    check_said(plan)
    problem = await _problem(session, view)
    if problem is not None:
        check_today(plan, problem)


def check_said(plan: RoutingPlan) -> None:
    """Refuse what the operator refused.

    Raises:
        CommandError: with the operator's words.
    """
    said = condition_of(plan, ConditionType.PROPOSED)
    rejected = said is not None and said.reason == ConditionReason.CERTIFICATE_REJECTED
    if said is not None and rejected and said.status is ConditionStatus.FALSE:
        raise CommandError(f"RoutingPlan {plan.metadata.name}", f"the operator refuses it: {said.message}", _REMEDY)


def check_today(plan: RoutingPlan, problem: Problem) -> None:
    """Refuse what no longer fits the fleet.

    Raises:
        CommandError: with the first broken constraint.
    """
    subject = f"RoutingPlan {plan.metadata.name}"
    try:
        problems = judge_plan(assess_plan(plan, problem)).problems
    except SolverError as error:
        raise CommandError(subject, str(error), _REMEDY) from None
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise CommandError(subject, f"it does not fit the fleet today: {problems[0]}{more}", _REMEDY)


async def _problem(session: Session, view: FleetView) -> Problem | None:
    try:
        return await live_problem(session, view)
    except SolverError as error:
        note(f"not checked against the fleet of today: {error}")
    except KubeError as error:
        if not is_forbidden(error):
            raise
        note(f"not checked against the fleet of today: {error}")
    return None
