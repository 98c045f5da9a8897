"""A plan file checked against its fleet: the certificate, its name, and on tiny instances the reference.

Inputs: a RoutingPlan, made by anyone, and a ``Problem``. Output: a ``Verification``. Trusts nothing in the plan
but the decision itself: the certificate recomputes cost and constraints, and every other field of the spec must
be what the planner would write for the decision. No I/O.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvplan_cli.errors import MissingExtra
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.errors import DigestError
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.digest import check_plan_name, inputs_digest
from kvplan_operator.plan.planned import Planned
from kvplan_solver.errors import EnumerationTooLarge
from kvplan_solver.instance import Instance

if TYPE_CHECKING:
    from kvplan_solver.reference import Bracket

_SLACK = 1e-6


@dataclass(frozen=True)
class Broken:
    """One broken rule: its name, what it is about, and how."""

    check: str
    subject: str
    message: str


@dataclass(frozen=True, eq=False)
class Verification:
    """What was found.

    Attributes:
        planned: the plan, priced anew.
        violations: broken rules, by name.
        notes: what does not make the plan wrong but should be known.
        bracket: two numbers with the optimum between them; None where not asked for or refused.
        refused: why the reference does not enumerate this instance; empty where it was not asked or did.
    """

    planned: Planned
    violations: tuple[Broken, ...]
    notes: tuple[str, ...] = ()
    bracket: "Bracket | None" = None
    refused: str = ""

    @property
    def holds(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations


def verified(plan: RoutingPlan, problem: Problem, *, with_reference: bool = False) -> Verification:
    """Check a plan.

    Raises:
        InvalidInput: the plan is for another fleet or other classes.
        MissingExtra: the reference was asked for and cvxpy is not installed.
    """
    planned = assess_plan(plan, problem)
    broken = [Broken(v.check.value, v.subject, v.message) for v in planned.certificate.violations]
    broken += [Broken("Derived", f"RoutingPlan {plan.metadata.name}", d.message) for d in planned.differences]
    broken += _name_problems(plan)
    bracket, refused = _reference(planned.instance) if with_reference else (None, "")
    if bracket is not None and not broken and planned.result.objective < bracket.lower * (1 - _SLACK):
        cost = planned.result.objective
        broken.append(Broken("Reference", "fleet", f"cost {cost:.9g} lies below the optimum's {bracket.lower:.9g}"))
    return Verification(planned, tuple(broken), _notes(plan, problem), bracket, refused)


def _name_problems(plan: RoutingPlan) -> list[Broken]:
    try:
        check_plan_name(plan)
    except DigestError as error:
        return [Broken("Digest", plan.metadata.name, str(error))]
    return []


def _notes(plan: RoutingPlan, problem: Problem) -> tuple[str, ...]:
    specs = {c.metadata.name: c.spec for c in problem.classes}
    if plan.spec.inputs_digest == inputs_digest(problem.fleet.spec, specs):
        return ()
    return ("the plan was made for other inputs: the fleet or its classes have changed since",)


def _reference(instance: Instance) -> "tuple[Bracket | None, str]":
    try:
        from kvplan_solver.reference import bracket  # noqa: PLC0415  loads cvxpy, an optional extra
    except ImportError:
        raise MissingExtra("--reference", "cvxpy", "reference") from None
    try:
        return bracket(instance), ""
    except EnumerationTooLarge as error:
        return None, str(error)
