"""What the spec says beats what was measured; what nobody knows is an error with a remedy."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.facts import ClassFacts, facts_from_config_maps
from kvplan_operator.model.number_source import Origin
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.priors.source import Source
from kvplan_operator.model.problem import PlanningInputs, Problem, build_problem, classes_of
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ClassInput, GroupPlacement, Instance, NodeInput
from tests.planning import LENGTHS, configuration, fleet, inputs, inventory, request_class

MEASURED = ClassFacts(
    requests_per_second=7.0,
    arrival_scv=3.0,
    output_lengths=np.array([5.0, 10.0, 30.0]),
    prompt_mean=111.5,
    prompt_p95=300,
    prompt_max=900,
    shared_prefix_tokens=32,
    suggested_radius_tokens=12.0,
)
UNKNOWN: dict[str, Any] = {"tokens": {"maxOutput": 500}, "arrivals": {}, "outputLengths": {}}


def built(facts: ClassFacts | None = None, **spec: Any) -> Problem:
    """The problem of one class."""
    found = {"chat": facts} if facts else {}
    return build_problem(fleet(), [request_class("chat", **spec)], inventory(4), found)


def only_class(problem: Problem) -> ClassInput:
    return problem.instance.classes[0]


def test_measurements_complete_an_empty_spec() -> None:
    problem = built(MEASURED, **UNKNOWN)
    c = only_class(problem)
    assert (c.arrival_rate, c.arrival_scv) == (7.0, 3.0)
    assert (c.input_tokens_mean, c.input_tokens_p95, c.input_tokens_max) == (111.5, 300, 900)
    assert c.shared_prefix_tokens == 32
    assert c.output_lengths.tolist() == [5.0, 10.0, 30.0]
    assert {row.source for row in problem.sources if row.subject == "class chat"} == {
        Origin.MEASUREMENT, Origin.SPEC,  # the radius is the fleet's
    }  # fmt: skip
    assert problem.warnings == ()


def test_the_spec_beats_every_measurement() -> None:
    assert only_class(built(MEASURED)).arrival_rate == 4.0
    c = only_class(built(MEASURED))
    assert (c.input_tokens_mean, c.input_tokens_p95, c.input_tokens_max) == (500.0, 1000, 2000)
    assert (c.shared_prefix_tokens, c.max_output_tokens) == (64, 500)
    assert c.output_lengths.size > 3


ABSENT: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "the rate": ({"arrivals": {}}, {"requests_per_second": None}, "spec.arrivals.requestsPerSecondMilli", "trace"),
    "the prompt": ({"tokens": {"maxOutput": 500}}, {"prompt_mean": None}, "spec.tokens.input", "set it"),
    "the lengths": ({"outputLengths": {}}, {"output_lengths": None}, "spec.outputLengths", "quantiles"),
    "the ConfigMap with the lengths": (
        {"outputLengths": {"configMapRef": {"name": "seen", "key": "tokens"}}},
        {"output_lengths": None},
        "spec.outputLengths.configMapRef",
        "give the ConfigMap seen with the key tokens",
    ),
}


@pytest.mark.parametrize(("spec", "gone", "field", "remedy"), ABSENT.values(), ids=ABSENT.keys())
def test_what_nobody_knows_is_named_with_its_remedy(
    spec: dict[str, Any], gone: dict[str, Any], field: str, remedy: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        built(replace(MEASURED, **gone), **spec)
    assert str(caught.value).startswith(f"RequestClass chat: {field} is ")
    assert remedy in str(caught.value)


STAND_INS: dict[str, tuple[dict[str, Any], tuple[float, int, int], int]] = {
    "P95 and maximum from the mean": ({"input": 100}, (100.0, 100, 100), 2),
    "the maximum from P95": ({"input": 100, "inputP95": 250}, (100.0, 250, 250), 1),
    "nothing": ({"input": 100, "inputP95": 250, "inputMax": 400}, (100.0, 250, 400), 0),
}


@pytest.mark.parametrize(("tokens", "expected", "warnings"), STAND_INS.values(), ids=STAND_INS.keys())
def test_unknown_prompt_lengths_are_stood_in_for_and_said(
    tokens: dict[str, int], expected: tuple[float, int, int], warnings: int
) -> None:
    problem = built(tokens=tokens | {"maxOutput": 500})
    c = only_class(problem)
    assert (c.input_tokens_mean, c.input_tokens_p95, c.input_tokens_max) == expected
    assert len(problem.warnings) == warnings


def test_a_measured_maximum_below_a_stated_p95_gives_way_and_is_said() -> None:
    problem = built(MEASURED, tokens={"input": 100, "inputP95": 1000, "maxOutput": 500})
    assert only_class(problem).input_tokens_max == 1000
    assert "the longest prompt of 900 tokens is below" in problem.warnings[0]


def test_a_measured_prefix_longer_than_the_stated_prompt_gives_way_and_is_said() -> None:
    facts = replace(MEASURED, shared_prefix_tokens=800)
    problem = built(facts, tokens={"input": 100, "inputP95": 200, "inputMax": 300, "maxOutput": 500})
    assert only_class(problem).shared_prefix_tokens == 100
    assert "shared prefix of 800 tokens" in problem.warnings[0]


def test_lengths_beyond_max_output_are_clipped_and_counted() -> None:
    facts = replace(MEASURED, output_lengths=np.array([600.0, 5.0, 700.0]))
    problem = built(facts, outputLengths={})
    assert only_class(problem).output_lengths.tolist() == [5.0, 500.0, 500.0]
    assert "2 of 3 output lengths lay outside" in problem.warnings[0]


def test_quantiles_without_a_maximum_end_at_max_output_and_say_so() -> None:
    problem = built(outputLengths={"quantiles": LENGTHS[:-1]})
    assert only_class(problem).output_lengths.max() > 490
    assert "no maximum" in problem.warnings[0]


RADII: dict[str, tuple[dict[str, Any], ClassFacts | None, float]] = {
    "a share of the mean": ({"radius": {"relativeMilli": 200}}, MEASURED, 3.0),
    "tokens": ({"radius": {"tokens": 40}}, MEASURED, 40.0),
    "as measured": ({"radius": {"auto": True}}, MEASURED, 12.0),
    "a fraction for Scale": ({"ambiguity": "Scale", "radius": {"relativeMilli": 200}}, MEASURED, 0.2),
    "as measured for Scale": ({"ambiguity": "Scale", "radius": {"auto": True}}, MEASURED, 0.8),
}


@pytest.mark.parametrize(("uncertainty", "facts", "radius"), RADII.values(), ids=RADII.keys())
def test_the_radius_is(uncertainty: dict[str, Any], facts: ClassFacts, radius: float) -> None:
    unspecified = request_class("chat", **UNKNOWN)
    problem = build_problem(fleet(uncertainty=uncertainty), [unspecified], inventory(4), {"chat": facts})
    assert only_class(problem).radius == pytest.approx(radius)


def test_an_automatic_radius_without_windows_is_the_sampling_noise_and_says_so() -> None:
    facts = replace(MEASURED, suggested_radius_tokens=None)
    made = fleet(uncertainty={"radius": {"auto": True}})
    problem = build_problem(made, [request_class("chat", **UNKNOWN)], inventory(4), {"chat": facts})
    assert 0 < only_class(problem).radius < 25
    assert "the sampling noise alone" in problem.warnings[0]


def test_costs_of_the_class_beat_the_fleets_and_zero_is_a_value() -> None:
    costs = {"preemptionRatio": 3, "latencyWeight": 0, "rejectionWeight": 9}
    c = only_class(built(costs=costs))
    assert (c.preemption_cost, c.waste_cost, c.latency_weight, c.rejection_weight) == (3.0, 1.0, 0.0, 9.0)
    plain = only_class(built())
    assert (plain.preemption_cost, plain.latency_weight, plain.rejection_weight) == (10.0, 5.0, 5000.0)


def test_the_instance_carries_the_fleets_settings() -> None:
    made = fleet(
        nodes={"selector": {}, "minGpus": 2, "maxGpus": 6},
        objective={"headroomMilli": 250, "gpuSecondWeight": 3, "idleGpuSecondWeight": 4, "switchingWeight": 5},
        uncertainty={"ambiguity": "WassersteinInf", "radius": {"tokens": 1}},
        engine={"blockTokens": 32},
    )
    running = (GroupPlacement("tp1", ("a",)),)
    i: Instance = build_problem(made, [request_class("chat")], inventory(4, 4, running=running), {}).instance
    assert (i.min_gpus, i.max_gpus, i.gpu_budget, i.headroom_milli, i.block_tokens) == (2, 6, 6, 250, 32)
    assert (i.gpu_second_cost, i.idle_gpu_second_cost, i.switching_cost) == (3.0, 4.0, 5.0)
    assert i.ambiguity.value == "WassersteinInf"
    assert i.running == running


def test_kv_capacity_is_whole_blocks() -> None:
    made = fleet(configurations=[configuration("tp1", 1, kvCapacityTokens=64_010)])
    assert (
        build_problem(made, [request_class("chat")], inventory(4), {}).instance.configurations[0].kv_capacity_tokens
        == 64_000
    )


def test_a_measured_configuration_beats_its_override_and_the_source_says_so() -> None:
    measured = {"tp1": Measurement(kv_capacity_tokens=48_000)}
    problem = build_problem(fleet(), [request_class("chat")], inventory(4), {}, measured=measured)
    capacity = {
        row.subject: (row.value, row.source) for row in problem.sources if row.quantity.startswith("KV capacity")
    }
    assert capacity == {
        "configuration tp1": (48_000, Source.MEASUREMENT),
        "configuration tp2": (128_000, Source.OVERRIDE),
    }


def test_sequences_that_nobody_set_follow_the_mean_reservation() -> None:
    open_end = configuration("tp1", 1)
    del open_end["maxSequences"]
    made = fleet(configurations=[open_end], uncertainty={"radius": {"tokens": 0}})
    problem = build_problem(made, [request_class("chat")], inventory(4), {})
    order = 500 + 250 + 6  # mean prompt and the fractile 10/11 of the quantiles, in blocks of 16
    assert problem.instance.configurations[0].max_sequences == int(64_000 / 1.2 / (-(-order // 16) * 16))


def labelled(name: str, **labels: str) -> RequestClass:
    return request_class(name).model_copy(
        update={"metadata": request_class(name).metadata.model_copy(update={"labels": labels})}
    )


def test_classes_belong_by_the_default_label_or_by_the_selector() -> None:
    mine, other = request_class("chat"), labelled("batch", team="research")
    assert classes_of(fleet(), [other, mine]) == (mine,)
    by_team = fleet(classes={"selector": {"matchLabels": {"team": "research"}}})
    assert classes_of(by_team, [other, mine]) == (other,)


def test_classes_are_ordered_by_name_whatever_the_order_given() -> None:
    classes = [request_class("chat"), request_class("batch"), request_class("code")]
    assert [c.metadata.name for c in classes_of(fleet(), classes)] == ["batch", "chat", "code"]


REFUSED: dict[str, tuple[PlanningInputs, str]] = {
    "no class belongs": (inputs(classes=(labelled("batch"),)), "kvplan.dev/fleet=demo"),
    "no GPU is usable": (inputs(inventory=inventory()), "no usable GPU"),
    "no node has the product of any configuration": (
        inputs(fleet=fleet(configurations=[configuration("tp1", 1, gpuProduct="NVIDIA-L4")])),
        "no usable node has its gpuProduct NVIDIA-L4",
    ),
    "two products and a configuration that names none": (
        inputs(
            fleet=fleet(configurations=[{"name": "tp1", "tensorParallel": 1}]),
            inventory=replace(inventory(4), nodes=(NodeInput("a", 4, "NVIDIA-H200"), NodeInput("b", 4, "NVIDIA-L4"))),
        ),
        "spec.configurations[tp1].gpuProduct",
    ),
    "the longest output fills the model's context": (
        inputs(fleet=fleet(model={"name": "m", "maxModelLen": 500})),
        "spec.tokens.maxOutput is 500",
    ),
    "prompts of P95 exceed the model's context": (
        inputs(fleet=fleet(model={"name": "m", "maxModelLen": 1200})),
        "spec.tokens.inputP95 is 1000",
    ),
    "a model nobody knows": (
        inputs(fleet=fleet(configurations=[{"name": "tp1", "tensorParallel": 1}])),
        "model.name is 'example/model'",
    ),
}


@pytest.mark.parametrize(("made_of", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_problem_is_refused_when(made_of: PlanningInputs, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made_of.problem()
    assert message in str(caught.value)


def test_prompts_beyond_the_models_context_are_cut_and_said() -> None:
    problem = inputs(fleet=fleet(model={"name": "m", "maxModelLen": 2000})).problem()
    assert [c.input_tokens_max for c in problem.instance.classes] == [1500, 1500]
    assert all("engines refuse them" in warning for warning in problem.warnings)


def test_a_configuration_that_cannot_run_is_left_out_with_the_reason() -> None:
    weights = {"name": "Qwen/Qwen3-32B"}
    made = fleet(model=weights, configurations=[{"name": f"tp{n}", "tensorParallel": n} for n in (1, 4)])
    problem = build_problem(made, [request_class("chat")], inventory(4, product="NVIDIA-L40S"), {})
    assert [k.name for k in problem.instance.configurations] == ["tp4"]
    assert problem.unusable[0][0] == "tp1"
    assert "the weights do not fit" in problem.warnings[0]


def config_map(text: str, key: str = "output-tokens") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}, "data": {key: text}}


def referring(**metadata: Any) -> RequestClass:
    made = request_class("chat", outputLengths={"configMapRef": {"name": "seen", "key": "output-tokens"}})
    return made.model_copy(update={"metadata": made.metadata.model_copy(update=metadata)})


def test_lengths_come_from_a_config_map_one_per_line() -> None:
    facts = facts_from_config_maps([referring()], [config_map("1\n5\n\n9\n")])
    assert facts["chat"].output_lengths is not None
    assert facts["chat"].output_lengths.tolist() == [1.0, 5.0, 9.0]


def test_lengths_come_from_a_config_map_of_quantiles() -> None:
    lengths = facts_from_config_maps([referring()], [config_map("0 10\n500 100\n1000 400\n")])["chat"].output_lengths
    assert lengths is not None
    assert np.quantile(lengths, 0.5) == pytest.approx(100, abs=1)


def test_the_suggested_radius_that_a_fit_left_comes_along() -> None:
    made = referring(annotations={"kvplan.dev/suggested-radius-tokens": "17"})
    assert facts_from_config_maps([made], [config_map("1\n")])["chat"].suggested_radius_tokens == 17.0


def test_a_config_map_that_is_not_given_yields_no_facts() -> None:
    assert facts_from_config_maps([referring()], []) == {}


BAD_MAPS: dict[str, tuple[dict[str, Any], str]] = {
    "the key is missing": (config_map("1\n", key="other"), "the keys there are other"),
    "a line is no number": (config_map("1\nmany\n"), "data[output-tokens] line 2 is 'many'"),
    "a length is negative": (config_map("-3\n"), "line 1 is '-3'"),
    "a length is infinite": (config_map("inf\n"), "line 1 is 'inf'"),
    "it is empty": (config_map("\n"), "data[output-tokens] holds 0 lines"),
    "lines differ in form": (config_map("1\n500 100\n"), "one length in tokens per line"),
}


@pytest.mark.parametrize(("document", "message"), BAD_MAPS.values(), ids=BAD_MAPS.keys())
def test_a_config_map_is_refused_when(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        facts_from_config_maps([referring()], [document])
    assert message in str(caught.value)


def test_known_facts_win_over_completing_ones() -> None:
    stated = ClassFacts(requests_per_second=1.0).completed_by(MEASURED)
    assert (stated.requests_per_second, stated.prompt_p95) == (1.0, 300)
