"""Questions of the form "and if": which texts are understood, and what each does to the inputs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.problem import PlanningInputs
from kvplan_operator.plan.planner import Planned
from kvplan_operator.plan.what_if import FORMS, Kind, Topic, apply_changes, parse_change
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import GroupPlacement
from tests.planning import configuration, demo, fleet, inputs, inventory, plan, request_class

PARSED: dict[str, tuple[Topic, str, Kind, float]] = {
    "gpus=+8": (Topic.GPUS, "", Kind.ADD, 8.0),
    "gpus=-4": (Topic.GPUS, "", Kind.ADD, -4.0),
    "gpus=64": (Topic.GPUS, "", Kind.SET, 64.0),
    "rate.chat=x1.5": (Topic.RATE, "chat", Kind.TIMES, 1.5),
    "rate.chat=12.5": (Topic.RATE, "chat", Kind.SET, 12.5),
    "slo.chat=800ms": (Topic.SLO, "chat", Kind.SET, 0.8),
    "slo.chat=2s": (Topic.SLO, "chat", Kind.SET, 2.0),
    "lengths.chat=x2": (Topic.LENGTHS, "chat", Kind.TIMES, 2.0),
    "ratio.chat=20": (Topic.RATIO, "chat", Kind.SET, 20.0),
    "configuration.tp1=off": (Topic.CONFIGURATION, "tp1", Kind.OFF, 0.0),
    " gpus=+8 ": (Topic.GPUS, "", Kind.ADD, 8.0),
}


@pytest.mark.parametrize(("text", "parts"), PARSED.items())
def test_a_change_is_understood(text: str, parts: tuple[Topic, str, Kind, float]) -> None:
    change = parse_change(text)
    assert (change.topic, change.name, change.kind) == parts[:3]
    assert change.value == pytest.approx(parts[3])


@pytest.mark.parametrize(
    "text",
    ["", "gpus", "gpus=", "gpus=many", "gpus=x2", "rate=5", "rate.chat=-1", "rate.chat=xx2", "slo.chat=800",
     "slo.chat=1e3ms", "lengths.chat=2", "ratio.chat=1.5", "configuration.tp1=on", "gpus=+8; rate.chat=2"],
)  # fmt: skip
def test_anything_else_is_refused_with_every_form(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_change(text)
    assert all(form in str(caught.value) for form in FORMS)


NINES = "9" * 400
TOO_LARGE: dict[str, str] = {
    f"rate.chat=x{NINES}": "at most 1000000 requests per second",
    f"rate.chat={NINES}": "at most 1000000 requests per second",
    "rate.chat=1000001": "at most 1000000 requests per second",
    f"ratio.chat={NINES}": "at most 1000000 unused tokens",
    f"lengths.chat=x{NINES}": "at most 1000000 times",
    f"slo.chat={NINES}s": "at most 31536000 seconds",
    f"slo.chat={NINES}ms": "at most 31536000 seconds",
    "gpus=+1000000": "at most 4096 GPUs",
    f"gpus={NINES}": "at most 4096 GPUs",
    f"gpus=-{NINES}": "at most 4096 GPUs",
}


@pytest.mark.parametrize(("text", "limit"), TOO_LARGE.items(), ids=[text[:16] for text in TOO_LARGE])
def test_a_number_beyond_the_limit_is_refused_with_the_limit_and_in_short(text: str, limit: str) -> None:
    with pytest.raises(InvalidInput, match=limit) as caught:
        parse_change(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    ["rate.chat=1000000", "ratio.chat=1000000", "lengths.chat=x1000000", "slo.chat=31536000s", "gpus=4096"],
)
def test_the_limits_themselves_are_accepted_and_planned(text: str) -> None:
    assert plan(changed(inputs(), text)).certificate.holds


def changed(made_of: PlanningInputs, *texts: str) -> PlanningInputs:
    return apply_changes(made_of, [parse_change(text) for text in texts])


GPUS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "gpus=+4": ((4, 2), (4, 2, 4)),
    "gpus=+5": ((4, 2), (4, 2, 4, 1)),
    "gpus=16": ((4, 2), (4, 2, 4, 4, 2)),
    "gpus=-1": ((4, 2), (4, 1)),
    "gpus=-3": ((4, 2), (3,)),
    "gpus=6": ((4, 2), (4, 2)),
}


@pytest.mark.parametrize(("text", "sizes"), GPUS.items())
def test_gpus_come_as_nodes_like_the_largest_and_leave_from_the_smallest(
    text: str, sizes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    before, after = sizes
    nodes = changed(inputs(inventory=inventory(*before)), text).inventory.nodes
    assert tuple(node.free_gpus for node in nodes) == after


def test_a_cap_on_gpus_moves_along() -> None:
    capped = inputs(fleet=fleet(nodes={"selector": {}, "maxGpus": 6}))
    assert changed(capped, "gpus=+4").problem().instance.gpu_budget == 10


def test_groups_on_nodes_that_leave_do_not_run_any_more() -> None:
    running = (GroupPlacement("tp1", ("a",)), GroupPlacement("tp1", ("b",)))
    made_of = inputs(inventory=inventory(4, 1, running=running))
    assert changed(made_of, "gpus=-1").inventory.running == running[:1]


def test_rates_are_set_and_multiplied() -> None:
    classes = {c.name: c for c in changed(inputs(), "rate.chat=x1.5", "rate.code=12.5").problem().instance.classes}
    assert (classes["chat"].arrival_rate, classes["code"].arrival_rate) == (6.0, 12.5)


def measured(**facts: Any) -> PlanningInputs:
    """One class whose rate and lengths were measured."""
    known = ClassFacts(requests_per_second=8.0, output_lengths=np.array([10.0, 400.0]))
    chat = request_class("chat", arrivals={}, outputLengths={})
    return inputs(classes=(chat,), facts={"chat": replace(known, **facts)})


def test_a_measured_rate_is_multiplied_too() -> None:
    assert changed(measured(), "rate.chat=x2").problem().instance.classes[0].arrival_rate == 16.0


def test_measured_lengths_grow_up_to_max_output() -> None:
    longer = changed(measured(), "lengths.chat=x2").problem()
    assert longer.instance.classes[0].output_lengths.tolist() == [20.0, 500.0]
    assert "1 of 2 output lengths" in longer.warnings[0]


def test_stated_lengths_grow_up_to_max_output() -> None:
    before, after = inputs().problem(), changed(inputs(), "lengths.chat=x2").problem()
    assert after.instance.classes[0].output_tokens_mean > 1.5 * before.instance.classes[0].output_tokens_mean
    assert after.instance.classes[0].output_lengths.max() <= 500


def test_promises_ratios_and_configurations_change() -> None:
    problem = changed(inputs(), "slo.chat=800ms", "ratio.chat=20", "configuration.tp1=off").problem()
    chat = problem.instance.classes[0]
    assert (chat.latency_slo_seconds, chat.preemption_cost) == (0.8, 20.0)
    assert [k.name for k in problem.instance.configurations] == ["tp2"]


def test_the_inputs_themselves_are_left_alone() -> None:
    made_of = inputs()
    changed(made_of, "gpus=+8", "rate.chat=x2", "configuration.tp1=off", "lengths.code=x2")
    assert made_of.problem().instance.gpu_budget == 8
    assert len(made_of.fleet.spec.configurations) == 2
    assert made_of.problem().instance.classes[0].arrival_rate == 4.0


NO_RATE = inputs(classes=(request_class("chat", arrivals={}),))
REFUSED: dict[str, tuple[PlanningInputs, str, str]] = {
    "a class that does not exist": (inputs(), "rate.batch=x2", "the classes are chat, code"),
    "a configuration that does not exist": (inputs(), "configuration.tp9=off", "tp1, tp2"),
    "the only configuration": (
        inputs(fleet=fleet(configurations=[configuration("tp1", 1)])),
        "configuration.tp1=off",
        "the only configuration",
    ),
    "no GPU left": (inputs(), "gpus=-8", "leave at least one GPU"),
    "GPUs without a node to be like": (inputs(inventory=inventory()), "gpus=+8", "no usable node"),
    "a factor of an unknown rate": (NO_RATE, "rate.chat=x2", "its rate is unknown"),
    "a factor of unknown lengths": (
        inputs(classes=(request_class("chat", outputLengths={}),)),
        "lengths.chat=x2",
        "lengths are unknown",
    ),
    "a promise of no time": (inputs(), "slo.chat=0ms", "at least 1ms"),
    "a ratio of 0": (inputs(), "ratio.chat=0", "at least 1"),
    "a factor beyond the API": (inputs(), "rate.chat=x500000", "at most 1000000 requests per second"),
    "more GPUs in all than can be planned": (inputs(), "gpus=+4090", "at most 4096 GPUs in all"),
}


@pytest.mark.parametrize(("made_of", "text", "remedy"), REFUSED.values(), ids=REFUSED.keys())
def test_a_change_is_refused_for(made_of: PlanningInputs, text: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        changed(made_of, text)
    assert remedy in str(caught.value)
    assert text in str(caught.value)


def cost(planned: Planned) -> float:
    assert planned.certificate.holds
    return planned.result.objective


def test_more_traffic_costs_more_and_more_gpus_never_do() -> None:
    busy = plan(changed(inputs(), "rate.chat=x8", "rate.code=x8"))
    assert cost(busy) > cost(demo())
    assert cost(plan(changed(inputs(), "rate.chat=x8", "rate.code=x8", "gpus=+8"))) <= cost(busy) * 1.001
