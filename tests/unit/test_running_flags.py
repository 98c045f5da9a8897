"""When an engine's limit on active sequences stays as it runs, and what the planner and the judge make of that."""

import pytest

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import PlanningInputs
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.cautions import cautions
from kvplan_operator.plan.diff import Change, diff_plans
from kvplan_operator.plan.digest import check_plan_name
from kvplan_operator.plan.judged import judge_plan
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.planner import make_plan, solver_options
from kvplan_operator.plan.running_flags import with_running_limit
from kvplan_operator.reconcile.solver_wire import encode_inputs
from kvplan_operator.reconcile.solver_worker import Line, answer
from tests.planning import configuration, fleet, inputs, request_class

LIMIT = "max-num-active-seqs"
PLAIN = {"max-model-len": "4096", "max-num-seqs": "64"}

CASES: dict[str, tuple[dict[str, str], dict[str, str], float, str]] = {
    "nothing runs": ({LIMIT: "50"}, {}, 30.0, "50"),
    "the same runs": ({LIMIT: "50"}, {LIMIT: "50"}, 30.0, "50"),
    "a little less runs": ({LIMIT: "50"}, {LIMIT: "47"}, 30.0, "47"),
    "just within the band": ({LIMIT: "50"}, {LIMIT: "40"}, 30.0, "40"),
    "far less runs": ({LIMIT: "50"}, {LIMIT: "39"}, 30.0, "50"),
    "more runs than fits the budget": ({LIMIT: "50"}, {LIMIT: "51"}, 30.0, "50"),
    "less runs than the plan needs": ({LIMIT: "50"}, {LIMIT: "45"}, 45.5, "50"),
    "another flag restarts the groups anyway": ({LIMIT: "50", "seed": "1"}, {LIMIT: "47"}, 30.0, "50"),
    "a flag that goes restarts them too": ({LIMIT: "50"}, {LIMIT: "47", "seed": "1"}, 30.0, "50"),
    "engines that never had the limit": ({LIMIT: "50"}, PLAIN, 30.0, "50"),
}


@pytest.mark.parametrize("sentence", CASES)
def test_the_limit_to_write_when(sentence: str) -> None:
    wanted, running, in_flight, expected = CASES[sentence]
    written = with_running_limit(PLAIN | wanted, PLAIN | running if running else {}, LIMIT, in_flight)
    assert written == PLAIN | wanted | {LIMIT: expected}


FLEET = fleet(configurations=[configuration("tp1", 1, maxSequences=128)])
LONG = {"input": 1500, "inputP95": 2000, "inputMax": 3000, "sharedPrefix": 0, "maxOutput": 500}


def mix(chat_milli: int) -> PlanningInputs:
    """Two classes that reserve differently; the rate of one decides what a mean request reserves."""
    chat = request_class("chat", arrivals={"requestsPerSecondMilli": chat_milli})
    return inputs(fleet=FLEET, classes=(chat, request_class("code", tokens=LONG)))


def planned(chat_milli: int, running: RoutingPlan | None = None) -> Planned:
    """Planned beside a plan in force."""
    return make_plan(mix(chat_milli).problem(), solver_options(FLEET), running)


def limits(plan: RoutingPlan) -> list[str]:
    """The limit of every configuration."""
    return [flag.value for group in plan.spec.groups for flag in group.engine_flags if flag.name == LIMIT]


def test_a_solve_that_only_moves_the_limit_a_little_restarts_nothing() -> None:
    before = planned(4_000).plan
    alone, beside = planned(6_000).plan, planned(6_000, before).plan
    assert {row.change for row in diff_plans(before, alone).rows if row.cold} == {Change.FLAG}
    assert diff_plans(before, beside).restarted == 0
    assert limits(beside) == limits(before) != limits(alone)
    check_plan_name(beside)
    assert planned(6_000, before).plan.spec == beside.spec


def test_a_limit_that_must_fall_to_fit_the_memory_falls() -> None:
    before = planned(4_000).plan
    beside = planned(1_000, before).plan
    assert limits(beside) == limits(planned(1_000).plan)
    assert int(limits(beside)[0]) < int(limits(before)[0])


def test_a_plan_that_keeps_the_limit_holds_and_says_so() -> None:
    before = planned(4_000).plan
    beside = planned(6_000, before)
    assert beside.certificate.holds
    assessed = assess_plan(beside.plan, beside.problem)
    assert assessed.differences == ()
    assert judge_plan(assessed).holds
    told = f"tp1 runs on with --{LIMIT}={limits(before)[0]}; {limits(planned(6_000).plan)[0]} is too close to it"
    for view in (beside, assessed):
        assert any(sentence.startswith(told) for sentence in cautions(view))


def test_a_limit_beyond_the_budget_is_no_figure_of_the_plan() -> None:
    plan = planned(4_000).plan
    assert cautions(assess_plan(plan, mix(4_000).problem())) == ()
    group = plan.spec.groups[0]
    flags = tuple(f.model_copy(update={"value": "34"}) if f.name == LIMIT else f for f in group.engine_flags)
    spec = plan.spec.model_copy(update={"groups": (group.model_copy(update={"engine_flags": flags}),)})
    wrong = assess_plan(plan.model_copy(update={"spec": spec}), mix(4_000).problem()).differences
    assert [difference.field for difference in wrong] == [f"spec.groups[tp1].engineFlags[{LIMIT}].value"]


def test_a_solver_process_is_told_what_runs() -> None:
    before, said = planned(4_000).plan, list[Line]()
    request = {"inputs": encode_inputs(mix(6_000)), "limitSeconds": 600, "running": before.to_wire()}
    answer(request, said.append)
    plans = [RoutingPlan.model_validate(line["plan"]) for line in said]
    assert [limits(plan) for plan in plans] == [limits(before)] * len(plans)
