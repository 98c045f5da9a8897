"""An explanation says what binds, what else was possible, and what ε really does."""

from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.plan.explain import Explanation, explain
from kvplan_operator.plan.planner import assess_plan
from kvplan_solver.certificate import Check
from kvplan_solver.result import BindingKind, RunnerUp
from tests.planning import demo, fleet, inputs, inventory, plan, request_class, sample


def explained(**parts: Any) -> Explanation:
    return explain(plan(inputs(**parts)))


def busy(rate_milli: int, **spec: Any) -> dict[str, Any]:
    """One class with so many thousandths of a request per second on two GPUs."""
    chat = request_class("chat", **({"arrivals": {"requestsPerSecondMilli": rate_milli}} | spec))
    return {"classes": (chat,), "inventory": inventory(2)}


def test_costs_bound_and_gap_are_those_of_the_result() -> None:
    found = explain(demo())
    assert found.costs == demo().result.costs
    assert found.lower_bound == demo().result.lower_bound
    assert found.gap == demo().result.gap


def test_full_gpus_are_named_with_the_value_of_one_more() -> None:
    found = explained(**busy(60_000))
    assert BindingKind.GPU_BUDGET in {binding.kind for binding in found.binding}
    assert found.gpu_value > 0
    assert any("one more GPU would save about" in sentence for sentence in found.would_change)


def test_rejected_demand_is_named_with_why_and_remedy() -> None:
    found = explained(**busy(60_000))
    (rejected,) = found.rejected
    assert rejected.class_name == "chat"
    assert rejected.why
    assert f"chat: {rejected.remedy}" in found.would_change
    assert "part of chat is rejected" in {binding.sentence for binding in found.binding}


def test_a_missed_latency_is_named_with_both_numbers() -> None:
    found = explained(**busy(1_000, slo={"latencyMilliseconds": 200}))
    (sentence,) = [binding.sentence for binding in found.binding if binding.kind is BindingKind.LATENCY]
    assert "chat misses its mean latency" in sentence
    assert "target 0.2 s" in sentence


def test_a_plan_with_room_to_spare_says_that_nothing_binds() -> None:
    assert explain(sample()).binding == ()


RADIUS: dict[str, tuple[dict[str, Any], bool, str]] = {
    "within the threshold": ({"radius": {"tokens": 1}}, False, "is within the threshold"),
    "above the threshold": ({"radius": {"tokens": 90}}, True, "is above the threshold"),
    "of every sample": (
        {"ambiguity": "WassersteinInf", "radius": {"tokens": 20}},
        True,
        "the radius of 20 moves the reservation under WassersteinInf",
    ),
}


@pytest.mark.parametrize(("uncertainty", "moves", "words"), RADIUS.values(), ids=RADIUS.keys())
def test_the_effect_of_the_radius_is_told_plainly(uncertainty: dict[str, Any], moves: bool, words: str) -> None:
    chat = explained(fleet=fleet(uncertainty=uncertainty)).classes[0]
    assert chat.radius_moves_reservation is moves
    assert words in chat.sentence
    assert chat.fractile == pytest.approx(10 / 11)


def test_under_wasserstein_1_the_step_function_is_named_and_the_step_too() -> None:
    found = explained(fleet=fleet(uncertainty={"radius": {"tokens": 1}}))
    chat = found.classes[0]
    assert "step function of the radius" in chat.sentence
    assert chat.shift_threshold_tokens is not None
    moved = f"chat: a radius above {chat.shift_threshold_tokens:.4g} tokens would move its reservation"
    assert moved in found.would_change


def test_a_radius_past_the_stated_threshold_does_move_the_reservation() -> None:
    within = explained(fleet=fleet(uncertainty={"radius": {"tokens": 1}})).classes[0]
    assert within.shift_threshold_tokens is not None
    past = int(within.shift_threshold_tokens) + 1
    beyond = explained(fleet=fleet(uncertainty={"radius": {"tokens": past}})).classes[0]
    assert beyond.reservation_tokens > within.reservation_tokens


MARGINS: dict[str, tuple[float, str]] = {
    "worse": (1.5, "(50.00%) more"),
    "equal": (1.0, "costs the same: fewer GPUs, then less change, decided"),
    "better before rounding": (0.999, "less before rounding of shares"),
}


@pytest.mark.parametrize(("factor", "words"), MARGINS.values(), ids=MARGINS.keys())
def test_the_runner_up_is_told_by_how_much_it_is(factor: float, words: str) -> None:
    result = demo().result
    other = RunnerUp((1, 0), result.objective * factor)
    found = explain(replace(demo(), result=replace(result, runner_up=other))).runner_up
    assert found is not None
    assert found.groups == (("tp1", 1),)
    assert found.sentence.startswith("the next best partition, 1 × tp1, ")
    assert words in found.sentence


def test_every_number_of_every_configuration_and_class_has_a_source() -> None:
    found = explain(demo())
    subjects = {row.subject for row in found.sources}
    assert subjects == {"configuration tp1", "configuration tp2", "class chat", "class code"}
    assert all(row.quantity and row.source for row in found.sources)


def test_warnings_of_the_problem_and_of_the_solve_come_together() -> None:
    report = replace(demo().fixed_point, converged=False, residual=0.4)
    late = replace(demo().result, deadline_hit=True)
    found = explain(replace(demo(), fixed_point=report, result=late))
    assert any("batch and plan do not agree: up to 40%" in warning for warning in found.warnings)
    assert any("the wall clock ended the search" in warning for warning in found.warnings)


def test_a_broken_plan_carries_its_violations_and_differences() -> None:
    spec = demo().plan.spec
    changes = {"max_sequences": 999, "replicas": 99, "placements": ()}
    groups = tuple(g.model_copy(update=changes) for g in spec.groups)
    broken = demo().plan.model_copy(update={"spec": spec.model_copy(update={"groups": groups})})
    found = explain(assess_plan(broken, demo().problem))
    assert Check.GPU_BUDGET in {violation.check for violation in found.violations}
    assert any(d.field.endswith(".maxSequences") and d.value == 999 for d in found.differences)
    assert found.lower_bound is None
