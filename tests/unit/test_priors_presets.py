"""Presets of GPUs and models: what a label or a name stands for, what overrides do, what is refused."""

import json
from importlib import import_module, resources
from typing import Any

import pytest

from kvplan_operator.api.fleet_engine import Model
from kvplan_operator.api.fleet_enums import KvDtype, WeightDtype
from kvplan_operator.model.priors.gpus import GPU_PRESETS, find_gpu
from kvplan_operator.model.priors.model_presets import MODEL_PRESETS, ModelPreset, find_preset
from kvplan_operator.model.priors.models import resolve_model
from kvplan_solver.errors import InvalidInput

LABELS = {
    "NVIDIA-H100-80GB-HBM3": "h100_sxm",
    "NVIDIA-H100-PCIe": "h100_pcie",
    "NVIDIA-H200": "h200_sxm",
    "NVIDIA-A100-SXM4-40GB": "a100_40gb",
    "NVIDIA-A100-PCIE-40GB": "a100_40gb_pcie",
    "NVIDIA-A100-SXM4-80GB": "a100_sxm",
    "NVIDIA-A100-80GB-PCIe": "a100_pcie",
    "NVIDIA-B200": "b200_sxm",
    "NVIDIA-L4": "l4",
    "NVIDIA-L40S": "l40s",
    "NVIDIA-L40S-SHARED": "l40s",
}


@pytest.mark.parametrize(("label", "name"), LABELS.items())
def test_a_product_label_names_its_preset(label: str, name: str) -> None:
    assert find_gpu(label).name == name


@pytest.mark.parametrize("label", ["NVIDIA-L40", "NVIDIA-GB200", "NVIDIA-H200-NVL", "Tesla-T4", ""])
def test_an_unknown_product_is_refused_with_the_label_and_the_known_presets(label: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        find_gpu(label)
    assert f"nvidia.com/gpu.product is {label!r}" in str(refusal.value)
    assert all(gpu.name in str(refusal.value) for gpu in GPU_PRESETS)
    assert "kvCapacityTokens" in str(refusal.value)


def test_a_mig_slice_is_refused_because_its_share_is_unknown() -> None:
    with pytest.raises(InvalidInput, match="MIG"):
        find_gpu("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")


def test_a_gpu_preset_in_the_spec_beats_the_label() -> None:
    assert find_gpu("Tesla-T4", "h200_sxm").name == "h200_sxm"
    with pytest.raises(InvalidInput, match=r"nodes\.gpuPreset is 'h300'"):
        find_gpu("NVIDIA-H200", "h300")


@pytest.mark.parametrize("gpu", GPU_PRESETS, ids=lambda gpu: gpu.name)
def test_every_gpu_preset_has_a_source_and_fast_eight_bit_units_or_none(gpu: Any) -> None:
    assert gpu.source
    assert gpu.fp8_flops is None or gpu.fp8_flops == pytest.approx(2 * gpu.bf16_flops, rel=0.02)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("Qwen/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("qwen3-32b", "Qwen/Qwen3-32B"),
        ("mirror/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B"),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_a_model_is_found_by_any_of_its_names(name: str, preset: str) -> None:
    found = find_preset(name)
    assert found is not None
    assert found.facts.name == preset


def test_no_name_means_two_presets() -> None:
    names = [name.rsplit("/", 1)[-1].lower() for p in MODEL_PRESETS for name in (p.facts.name, *p.aliases)]
    assert len(names) == len(set(names))


def test_the_same_facts_in_the_spec_leave_the_model_in_the_snapshot() -> None:
    model = Model(name="Qwen/Qwen3-32B", layers=64, kv_heads=8, weight_dtype=WeightDtype.BF16)
    assert resolve_model(model).snapshot_model == "Qwen/Qwen3-32B"


CHANGES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "fewer layers": ({"layers": 32}, "layers", 32),
    "an eight-bit cache": ({"kv_dtype": KvDtype.FP8}, "kv_dtype", KvDtype.FP8),
    "eight-bit weights": ({"weight_dtype": WeightDtype.FP8}, "weights_bytes", 32_762_123_264),
    "measured weights": ({"weights_bytes": 70_000_000_000}, "weights_bytes", 70_000_000_000),
    "other parameters": ({"parameters_billions": 30}, "weights_bytes", 60_000_000_000),
    "other heads": ({"kv_heads": 4}, "kv_heads", 4),
    "other head size": ({"head_dim": 64}, "head_dim", 64),
}


@pytest.mark.parametrize(("fields", "name", "value"), CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_fact_wins_and_takes_the_model_out_of_the_snapshot(
    fields: dict[str, Any], name: str, value: Any
) -> None:
    facts = resolve_model(Model(name="Qwen/Qwen3-32B", **fields))
    assert getattr(facts, name) == value
    assert facts.snapshot_model == ""


def test_the_api_default_of_a_number_format_does_not_override_an_eight_bit_preset() -> None:
    facts = resolve_model(Model(preset="nvidia/Llama-3.1-70B-Instruct-FP8"))
    assert (facts.weight_dtype, facts.kv_dtype) == (WeightDtype.FP8, KvDtype.FP8)
    assert facts.snapshot_model


def test_an_unknown_model_is_described_by_its_numbers() -> None:
    facts = resolve_model(Model(name="acme/own", layers=40, kv_heads=8, head_dim=128, parameters_billions=13))
    assert (facts.parameters, facts.weights_bytes, facts.kv_dtype) == (13e9, 26e9, KvDtype.BF16)
    by_bytes = Model(
        name="acme/own", layers=40, kv_heads=8, head_dim=128, weights_bytes=26_000_000_000,
        weight_dtype=WeightDtype.FP8,
    )  # fmt: skip
    assert resolve_model(by_bytes).parameters == 26e9


def test_an_unknown_model_without_numbers_is_refused_with_every_missing_field() -> None:
    with pytest.raises(InvalidInput) as refusal:
        resolve_model(Model(name="acme/own", kv_heads=8))
    text = str(refusal.value)
    assert "model.name is 'acme/own'" in text
    for field in (
        "spec.model.layers",
        "spec.model.headDim",
        "spec.model.parametersBillions or spec.model.weightsBytes",
    ):
        assert field in text
    assert "model.kvHeads" not in text
    assert all(preset.facts.name in text for preset in MODEL_PRESETS)


def test_an_unknown_preset_is_refused_even_when_the_name_is_known() -> None:
    with pytest.raises(InvalidInput, match=r"model\.preset is 'acme/none'"):
        resolve_model(Model(name="Qwen/Qwen3-8B", preset="acme/none"))


@pytest.mark.parametrize("tensor_parallel", [1, 2, 4, 8])
def test_a_rank_never_holds_less_than_one_kv_head(tensor_parallel: int) -> None:
    facts = resolve_model(Model(name="Qwen/Qwen3-30B-A3B"))
    heads = max(4, tensor_parallel)
    assert facts.kv_bytes_per_token(tensor_parallel) == 2 * 48 * heads * 128 * 2


def _estimator_file(*parts: str) -> str:
    pytest.importorskip("aiconfigurator_core")
    return resources.files(import_module("aiconfigurator_core")).joinpath(*parts).read_text(encoding="utf-8")


def _configured(preset: ModelPreset) -> bool:
    return "model_configs/" in preset.source


@pytest.mark.parametrize("preset", [p for p in MODEL_PRESETS if _configured(p)], ids=lambda preset: preset.facts.name)
def test_a_model_preset_agrees_with_the_configuration_it_was_counted_from(preset: ModelPreset) -> None:
    config = json.loads(_estimator_file(*preset.source.split()[-1].split("/")))
    facts = preset.facts
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    assert facts.layers == config["num_hidden_layers"]
    assert facts.kv_heads == config["num_key_value_heads"]
    assert facts.head_dim == (config.get("head_dim") or hidden // heads)
    attention = 2 * hidden * (heads + facts.kv_heads) * facts.head_dim
    width, experts = config["intermediate_size"], config.get("num_experts") or 1
    if experts > 1:
        width = config["moe_intermediate_size"]
    matrices = facts.layers * (attention + experts * 3 * hidden * width) + 2 * config["vocab_size"] * hidden
    assert facts.parameters == pytest.approx(matrices, rel=1e-3), "norms and router are the rest"


@pytest.mark.parametrize("gpu", [g for g in GPU_PRESETS if "system file" in g.source], ids=lambda g: g.name)
def test_a_gpu_preset_agrees_with_the_system_file_of_the_estimator(gpu: Any) -> None:
    import yaml

    found = yaml.safe_load(_estimator_file("systems", f"{gpu.name}.yaml"))["gpu"]
    assert gpu.memory_bytes == found["mem_capacity"]
    assert gpu.bandwidth == found["mem_bw"]
    assert gpu.bf16_flops == found["bfloat16_tc_flops"]
    assert gpu.fp8_flops == found.get("fp8_tc_flops")


@pytest.mark.parametrize("gpu", [g for g in GPU_PRESETS if "system file" in g.source], ids=lambda g: g.name)
def test_a_fast_link_is_one_beyond_pcie(gpu: Any) -> None:
    import yaml

    node = yaml.safe_load(_estimator_file("systems", f"{gpu.name}.yaml"))["node"]
    assert gpu.fast_link == (node["intra_node_bw"] > 64e9)
