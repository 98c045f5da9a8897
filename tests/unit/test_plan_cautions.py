"""What a plan must say of itself: limits, idle classes, whom it fails, and what was given and not used."""

from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from kvplan_cli.app import app
from kvplan_cli.plan_view import headline
from kvplan_operator.api.fleet_engine import Model
from kvplan_operator.model.priors.models import uneven_heads
from kvplan_operator.model.problem import MOST_GROUPS, build_problem, left_out_classes
from kvplan_operator.plan.cautions import cautions, late_classes, serves_nobody, stated_in_file
from kvplan_operator.plan.planner import assess_plan
from kvplan_solver.errors import InvalidInput
from tests.planning import configuration, demo, fleet, inputs, inventory, plan, request_class
from tests.unit.test_cli_commands import TINY, edited

IDLE: dict[str, Any] = {"arrivals": {"requestsPerSecondMilli": 0}}


def run(*arguments: object) -> Result:
    result: Any = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result  # type: ignore[no-any-return]


@pytest.mark.parametrize("gpus", [2_000, 1_000_000])
def test_no_more_groups_are_planned_than_a_plan_can_list(gpus: int) -> None:
    busy = request_class("chat", arrivals={"requestsPerSecondMilli": 10_000_000})
    vast = plan(inputs(classes=(busy,), inventory=inventory(gpus)))
    assert vast.certificate.holds
    assert max(vast.result.groups) <= MOST_GROUPS
    assert vast.result.runner_up is not None
    assert max(vast.result.runner_up.groups) <= MOST_GROUPS
    assert "configuration tp1: the nodes could hold more groups than the 1024" in vast.problem.warnings[0]


def test_a_class_without_traffic_goes_to_a_group_that_runs_for_others() -> None:
    planned = plan(inputs(classes=(request_class("chat"), request_class("rare", **IDLE))))
    rare = planned.plan.spec.classes[1]
    assert (rare.name, rare.admit_milli, rare.prefix_cached_on) == ("rare", 1_000, ())
    running = {group.configuration for group in planned.plan.spec.groups}
    assert {route.configuration for route in rare.routes} <= running
    assert planned.certificate.holds
    assert cautions(planned) == ()


def test_a_class_without_traffic_and_without_groups_is_named() -> None:
    planned = plan(inputs(classes=(request_class("rare", **IDLE),)))
    assert planned.plan.spec.classes[0].admit_milli == 0
    assert "class rare has no traffic and no group that can hold it runs" in cautions(planned)[0]
    floor = fleet(nodes={"selector": {}, "minGpus": 1})
    kept = plan(inputs(fleet=floor, classes=(request_class("rare", **IDLE),)))
    assert kept.plan.spec.classes[0].admit_milli == 1_000


def test_a_plan_that_serves_nobody_says_why() -> None:
    nobody = plan(inputs(fleet=fleet(objective={"rejectionWeight": 0})))
    assert "requests arrive for chat, code" in serves_nobody(nobody)
    assert "rejects 100.0 % of chat, rejects 100.0 % of code" in headline(nobody)
    assert serves_nobody(demo()) == ""


def test_a_missed_latency_objective_is_in_the_first_line() -> None:
    late = plan(inputs(classes=(request_class("chat", slo={"latencyMilliseconds": 200}),)))
    assert late_classes(late) == ("chat",)
    assert headline(late).endswith("mean latency of chat above objective")


def test_a_plan_file_keeps_what_it_states_of_its_own_worth() -> None:
    made = demo()
    assert stated_in_file(made) == ()
    worth, runner_up = stated_in_file(assess_plan(made.plan, made.problem))
    assert worth.startswith(f"{made.result.status.value}, lower bound")
    assert "the next best partition" in runner_up
    assert worth.endswith("(stated in the file, not re-proven)")


def test_classes_of_no_fleet_are_named() -> None:
    stray = request_class("stray")
    stray = stray.model_copy(
        update={"metadata": stray.metadata.model_copy(update={"labels": {"kvplan.dev/fleet": "x"}})}
    )
    remarks = left_out_classes([request_class("chat"), stray], [fleet()])
    problem = build_problem(fleet(), [request_class("chat"), stray], inventory(4), {}, remarks=remarks)
    (warning,) = problem.warnings
    assert "RequestClass default/stray is left out: it belongs to no fleet given" in warning
    assert problem.inputs.problem().warnings == problem.warnings


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "{name: code, labels: {kvplan.dev/fleet: tiny}}",
            "{name: code, labels: {kvplan.dev/fleet: tyni}}",
            "no fleet",
        ),
        (
            "apiVersion: kvplan.dev/v1alpha1\nkind: RequestClass\nmetadata: {name: code",
            "apiVersion: kvplan.io/v1\nkind: RequestClass\nmetadata: {name: code",
            "its apiVersion is kvplan.io/v1",
        ),
    ],
    ids=["a mistyped label", "another API group"],
)
def test_the_command_warns_of_a_class_it_does_not_plan(tmp_path: Any, old: str, new: str, words: str) -> None:
    edited(tmp_path, "classes.yaml", old, new)
    for command in ("plan", "explain"):
        shown = run(command, "-f", tmp_path)
        assert shown.exit_code == 0
        assert "code is left out" in shown.stdout
        assert words in shown.stdout


def test_a_plan_for_nobody_ends_with_exit_code_1_and_is_not_written(tmp_path: Any) -> None:
    edited(tmp_path, "fleet.yaml", "  configurations:", "  objective: {rejectionWeight: 0}\n  configurations:")
    out = tmp_path / "plan.yaml.out"
    shown = run("plan", "-f", tmp_path, "--out", out)
    assert shown.exit_code == 1
    assert "serves nobody" in shown.stderr
    assert not out.exists()


def test_the_command_knows_no_time_limit_unless_one_is_given(tmp_path: Any) -> None:
    edited(tmp_path, "fleet.yaml", "  configurations:", "  solver: {timeLimitSeconds: 1}\n  configurations:")
    first, second = run("plan", "-f", tmp_path, "-o", "json"), run("plan", "-f", TINY, "-o", "json")
    assert '"deadlineHit": true' not in first.stdout
    assert '"status": "Optimal"' in first.stdout
    assert '"status": "Optimal"' in second.stdout


def test_lengths_that_contradict_are_told_in_field_names() -> None:
    short = {"input": 500, "inputP95": 200, "inputMax": 900, "maxOutput": 500}
    problem = inputs(classes=(request_class("chat", tokens=short),)).problem()
    assert "P95 prompt of 200 tokens is below the mean of 500" in problem.warnings[0]
    with pytest.raises(InvalidInput, match=r"RequestClass chat: spec.tokens.sharedPrefix is 300: .*P95 prompt of 200"):
        inputs(classes=(request_class("chat", tokens=short | {"sharedPrefix": 300}),)).problem()


@pytest.mark.parametrize(
    ("model", "size", "reason"),
    [
        ({"preset": "Qwen/Qwen3-32B"}, 3, "does not divide the model's 64 attention heads"),
        ({"preset": "Qwen/Qwen3-30B-A3B"}, 8, ""),
        ({"name": "m", "kvHeads": 8}, 6, "neither divides the model's 8 KV heads nor is a multiple"),
        ({"name": "m"}, 6, ""),
    ],
)
def test_heads_that_cannot_be_split_are_the_reason(model: dict[str, Any], size: int, reason: str) -> None:
    found = uneven_heads(Model.model_validate(model), size)
    assert found.endswith(reason) if reason else found == ""


def test_a_configuration_that_cannot_split_the_heads_is_left_out() -> None:
    made = fleet(model={"preset": "Qwen/Qwen3-32B"}, configurations=[configuration("a", 1), configuration("b", 3)])
    assert inputs(fleet=made).problem().unusable == (
        ("b", "tensorParallel 3 does not divide the model's 64 attention heads"),
    )
