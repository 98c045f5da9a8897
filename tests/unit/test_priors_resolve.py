"""Which source a value comes from, and configurations that cannot run."""

from typing import Any

import pytest

from kvplan_operator.api.fleet_engine import Configuration, Model
from kvplan_operator.model.priors.formula import Assumptions
from kvplan_operator.model.priors.resolve import (
    Measurement,
    PriorRequest,
    ResolvedConfiguration,
    UnusableConfiguration,
    configuration_input,
    resolve_configuration,
)
from kvplan_operator.model.priors.source import Source
from kvplan_solver.errors import InvalidInput


def request(
    model: str = "Qwen/Qwen3-32B",
    product: str = "NVIDIA-H200",
    *,
    spec: dict[str, Any] | None = None,
    **rest: Any,
) -> PriorRequest:
    configuration = Configuration(**{"name": "tp2", "tensor_parallel": 2, **(spec or {})})
    return PriorRequest(Model(name=model), configuration, product, **rest)


def resolve(*arguments: Any, **keywords: Any) -> ResolvedConfiguration:
    found = resolve_configuration(request(*arguments, **keywords))
    assert isinstance(found, ResolvedConfiguration)
    return found


def sources(found: ResolvedConfiguration) -> tuple[Source, Source, Source]:
    return found.kv_capacity_tokens.source, found.prefill.source, found.decode.source


OVERRIDES = {
    "kv_capacity_tokens": 500_000,
    "prefill_tokens_per_second": 20_000,
    "decode_microseconds_per_token": 12_000,
}
MEASURED = Measurement(400_000, 1e-4, 0.011)
SEEN, SPEC, SHIPPED, COMPUTED = Source.MEASUREMENT, Source.OVERRIDE, Source.SNAPSHOT, Source.FORMULA
ORDER: dict[str, tuple[dict[str, Any], tuple[Source, Source, Source]]] = {
    "a known model on a known GPU": ({}, (SHIPPED, SHIPPED, SHIPPED)),
    "a pipeline the snapshot does not have": (
        {"spec": {"pipeline_parallel": 2}},
        (COMPUTED, COMPUTED, COMPUTED),
    ),
    "a GPU the snapshot does not have": ({"product": "NVIDIA-H100-PCIe"}, (COMPUTED, COMPUTED, COMPUTED)),
    "a model the snapshot does not have": (
        {"model": "mistralai/Mistral-7B-v0.1"},
        (COMPUTED, COMPUTED, COMPUTED),
    ),
    "another share of GPU memory": (
        {"assumptions": Assumptions(memory_utilisation=0.8)},
        (COMPUTED, SHIPPED, SHIPPED),
    ),
    "all values in the spec": ({"spec": OVERRIDES}, (SPEC, SPEC, SPEC)),
    "capacity alone in the spec": ({"spec": {"kv_capacity_tokens": 500_000}}, (SPEC, SHIPPED, SHIPPED)),
    "decode alone measured": (
        {"measured": Measurement(decode_seconds_per_token=0.011)},
        (SHIPPED, SHIPPED, SEEN),
    ),
    "measured and in the spec": ({"spec": OVERRIDES, "measured": MEASURED}, (SEEN, SEEN, SEEN)),
    "capacity measured, the rest in the spec": (
        {"spec": OVERRIDES, "measured": Measurement(kv_capacity_tokens=400_000)},
        (SEEN, SPEC, SPEC),
    ),
}


@pytest.mark.parametrize(("keywords", "expected"), ORDER.values(), ids=ORDER.keys())
def test_each_value_comes_from_the_most_trusted_source_that_has_it(
    keywords: dict[str, Any], expected: tuple[Source, Source, Source]
) -> None:
    assert sources(resolve(**keywords)) == expected


def test_given_values_are_used_as_given() -> None:
    found = resolve(spec=OVERRIDES)
    solver_input = configuration_input(found, 64)
    assert solver_input.kv_capacity_tokens == 500_000
    assert solver_input.prefill_seconds_per_token == pytest.approx(1 / 20_000)
    assert solver_input.decode_seconds_per_token == pytest.approx(0.012)
    assert solver_input.overhead_seconds == 0.0
    assert found.profile is None


def test_one_measured_speed_replaces_one_column_and_leaves_the_other_to_the_batch() -> None:
    plain, measured = resolve(), resolve(measured=Measurement(decode_seconds_per_token=0.011))
    assert measured.curve.at(1).decode_seconds_per_token == measured.curve.at(128).decode_seconds_per_token
    assert measured.curve.at(64).prefill_seconds_per_token == plain.curve.at(64).prefill_seconds_per_token
    assert measured.profile is not None


def test_speeds_measured_at_one_batch_move_the_priors_curve_through_their_point() -> None:
    plain = resolve().curve
    measured = resolve(measured=Measurement(400_000, 1e-4, 0.02, batch=16)).curve
    assert measured.at(16).decode_seconds_per_token == pytest.approx(0.02)
    assert measured.at(16).prefill_seconds_per_token == pytest.approx(1e-4)
    growth = plain.at(128).decode_seconds_per_token / plain.at(16).decode_seconds_per_token
    assert growth > 1.2
    assert measured.at(128).decode_seconds_per_token == pytest.approx(0.02 * growth, rel=0.02)
    assert measured.at(128).overhead_seconds == 0.0


def test_a_measured_batch_moves_no_number_that_a_person_stated() -> None:
    found = resolve(
        spec={"decode_microseconds_per_token": 12_000}, measured=Measurement(prefill_seconds_per_token=1e-4, batch=16)
    )
    assert found.curve.at(1).decode_seconds_per_token == found.curve.at(128).decode_seconds_per_token == 0.012


def test_without_a_prior_speeds_measured_at_one_batch_hold_for_all() -> None:
    found = resolve(model="acme/own", product="Tesla-T4", measured=Measurement(400_000, 1e-4, 0.02, batch=16))
    assert found.curve.at(1).decode_seconds_per_token == found.curve.at(128).decode_seconds_per_token == 0.02


def test_a_measured_fleet_needs_neither_a_known_model_nor_a_known_gpu() -> None:
    found = resolve(model="acme/own", product="Tesla-T4", measured=MEASURED)
    assert sources(found) == (SEEN, SEEN, SEEN)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_measurement_of_nothing_is_refused_rather_than_believed(value: float) -> None:
    with pytest.raises(InvalidInput, match="decode_seconds_per_token"):
        Measurement(decode_seconds_per_token=value)


def test_the_details_name_the_profile_and_the_field() -> None:
    found = resolve(spec={"kv_capacity_tokens": 500_000})
    assert found.kv_capacity_tokens.detail == "kvCapacityTokens"
    assert found.decode.detail == "Qwen/Qwen3-32B on h200_sxm TP 2, aiconfigurator-core 0.12.0"


def test_a_formula_over_pcie_warns_of_what_it_leaves_out() -> None:
    assert "PCIe" in resolve(product="NVIDIA-H100-PCIe").prefill.detail
    assert "PCIe" not in resolve(spec={"pipeline_parallel": 2}).prefill.detail
    alone = resolve("Qwen/Qwen3-8B", "NVIDIA-H100-PCIe", spec={"tensor_parallel": 1})
    assert "PCIe" not in alone.prefill.detail


@pytest.mark.parametrize("source", Source)
def test_every_source_explains_itself_in_words(source: Source) -> None:
    assert len(source.sentence.split()) >= 5


def test_max_sequences_is_the_spec_s_or_derived_from_memory() -> None:
    assert resolve(spec={"max_sequences": 48}).max_sequences.value == 48
    derived = resolve(mean_reservation_tokens=10_000.0, headroom=0.2)
    assert derived.max_sequences.value == int(derived.kv_capacity_tokens.value / 12_000)
    assert resolve().max_sequences.value == 256


def test_weights_that_do_not_fit_make_a_configuration_unusable_with_the_reason() -> None:
    spec = {"name": "tp1", "tensor_parallel": 1}
    found = resolve_configuration(request("meta-llama/Llama-3.3-70B-Instruct", "NVIDIA-H100-80GB-HBM3", spec=spec))
    assert isinstance(found, UnusableConfiguration)
    assert found.configuration.name == "tp1"
    for part in ("weights do not fit", "131.4 GiB", "1 × h100_sxm", "use at least 2 GPUs a group"):
        assert part in found.reason


def test_a_usable_number_of_gpus_is_what_the_reason_recommends() -> None:
    spec = {"tensor_parallel": 2}
    found = resolve_configuration(request("meta-llama/Llama-3.3-70B-Instruct", "NVIDIA-H100-80GB-HBM3", spec=spec))
    assert isinstance(found, ResolvedConfiguration)


def test_an_unknown_gpu_and_an_unknown_model_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"nvidia\.com/gpu\.product is 'Tesla-T4'"):
        resolve_configuration(request(product="Tesla-T4"))
    with pytest.raises(InvalidInput, match=r"model\.name is 'acme/own'.*model\.layers"):
        resolve_configuration(request(model="acme/own"))


def test_the_solver_input_carries_parallelism_product_and_stages() -> None:
    spec = {"pipeline_parallel": 2, "gpu_product": "NVIDIA-H200", "span_nodes": True}
    solver_input = configuration_input(resolve(spec=spec), 8)
    assert (solver_input.tensor_parallel, solver_input.pipeline_parallel) == (2, 2)
    assert (solver_input.gpu_product, solver_input.spans_nodes) == ("NVIDIA-H200", True)


def test_a_larger_batch_never_makes_the_solver_input_faster() -> None:
    found = resolve()
    slow = [configuration_input(found, batch) for batch in (1, 16, 64, 256)]
    decode = [k.decode_seconds_per_token for k in slow]
    prefill = [k.prefill_seconds_per_token for k in slow]
    assert decode == sorted(decode)
    assert prefill == sorted(prefill)
