"""What a solver process says, read in this one."""

from typing import Any

import pytest

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.planner import make_plan, planned_incumbent, solver_options
from kvplan_operator.reconcile import solver_worker
from kvplan_operator.reconcile.solver_wire import encode_inputs
from kvplan_solver.result import Result
from tests.planning import fleet, inputs, inventory

Line = dict[str, Any]


def answers(made_of: Any, **request: Any) -> list[Line]:
    """Every line of the answer to a request."""
    lines: list[Line] = []
    solver_worker.answer({"inputs": encode_inputs(made_of), "limitSeconds": 20.0, **request}, lines.append)
    return lines


def test_the_last_line_is_the_plan_and_all_before_it_are_plans_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_worker, "INCUMBENT_SECONDS", 0.0)
    made_of = inputs(inventory=inventory(8, 8))
    *streamed, last = answers(made_of)
    assert last["kind"] == "plan"
    assert streamed
    for line in streamed:
        assert line["kind"] == "incumbent"
        plan = RoutingPlan.model_validate(line["plan"])
        assert any(group.replicas for group in plan.spec.groups)
        assert assess_plan(plan, made_of.problem()).certificate.holds


def test_streamed_plans_only_get_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_worker, "INCUMBENT_SECONDS", 0.0)
    made_of = inputs(inventory=inventory(8, 8))
    plans = [RoutingPlan.model_validate(line["plan"]) for line in answers(made_of)]
    costs = [assess_plan(plan, made_of.problem()).result.objective for plan in plans]
    assert costs[:-1] == sorted(costs[:-1], reverse=True)
    assert costs[-1] <= min(costs) * (1 + 1e-6)


def test_incumbents_that_come_too_fast_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_worker, "INCUMBENT_SECONDS", 1e9)
    assert len(answers(inputs(inventory=inventory(8, 8)))) <= 2


def test_the_last_incumbent_of_a_search_is_the_plan_it_ends_with() -> None:
    found: list[Result] = []
    problem = inputs().problem()
    plan = make_plan(problem, solver_options(problem.fleet, on_incumbent=found.append)).plan
    assert planned_incumbent(problem, found[-1], 0.0).plan.spec == plan.spec


@pytest.mark.parametrize(
    ("made_of", "kind", "words"),
    [
        pytest.param(
            inputs(fleet=fleet(nodes={"selector": {}, "minGpus": 9})), "refused", "spec.nodes.minGpus", id="no plan"
        ),
        pytest.param(inputs(inventory=inventory()), "failed", "spec.nodes", id="no GPU"),
    ],
)
def test_what_cannot_be_solved_is_one_line_with_the_field(made_of: Any, kind: str, words: str) -> None:
    (line,) = answers(made_of)
    assert line["kind"] == kind
    assert words in line["message"]


def test_whatever_else_goes_wrong_is_a_line_too() -> None:
    lines: list[Line] = []
    solver_worker.answer({"inputs": {}, "limitSeconds": 1}, lines.append)
    assert [line["kind"] for line in lines] == ["failed"]
    assert "KeyError" in lines[0]["message"]
