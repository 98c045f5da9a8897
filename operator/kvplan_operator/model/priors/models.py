"""What a fleet's model is: a preset or a known name, with any given field put over it.

Purpose: turn ``spec.model`` into the sizes of the priors. Input: the API's ``Model``. Output: ``ModelFacts``.
Must not: guess a size; what is missing is named, field by field.
"""

from dataclasses import replace
from typing import TypeVar

from kvplan_operator.api.fleet_engine import Model
from kvplan_operator.api.fleet_enums import KvDtype, WeightDtype
from kvplan_operator.model.priors.model_presets import BITS, ModelFacts, find_preset, preset_names
from kvplan_solver.errors import InvalidInput

BILLION = 1_000_000_000
T = TypeVar("T")


def resolve_model(model: Model) -> ModelFacts:
    """The facts of a model; a given field beats the preset's.

    Raises:
        InvalidInput: a preset that does not exist, or an unknown model with a size missing (all are named).
    """
    preset = find_preset(model.preset or model.name or "")
    if preset is not None:
        return _overridden(preset.facts, model)
    if model.preset is not None:
        raise InvalidInput("ServingFleet", "spec.model.preset", model.preset, f"use one of {preset_names()}")
    return _from_numbers(model)


def uneven_heads(model: Model, tensor_parallel: int) -> str:
    """Why an engine cannot split the model's heads over so many GPUs; empty where it can, or nobody knows the heads.

    Attention heads are dealt out evenly; KV heads too, or each is copied to equally many GPUs.
    """
    preset = find_preset(model.preset or model.name or "")
    kv_heads = model.kv_heads or (preset.facts.kv_heads if preset else None)
    attention = preset.facts.attention_heads if preset else 0
    if attention % tensor_parallel:
        return f"tensorParallel {tensor_parallel} does not divide the model's {attention} attention heads"
    if kv_heads and kv_heads % tensor_parallel and tensor_parallel % kv_heads:
        return f"tensorParallel {tensor_parallel} neither divides the model's {kv_heads} KV heads nor is a multiple"
    return ""


def _overridden(preset: ModelFacts, model: Model) -> ModelFacts:
    """Given fields over the preset's; a real change takes the model out of the snapshot."""
    weight_dtype = _or(model.weight_dtype, preset.weight_dtype)
    parameters = _parameters(model, preset.parameters)
    resized = (weight_dtype, parameters) != (preset.weight_dtype, preset.parameters)
    facts = replace(
        preset,
        parameters=parameters,
        active_parameters=preset.active_parameters * parameters / preset.parameters,
        layers=_or(model.layers, preset.layers),
        kv_heads=_or(model.kv_heads, preset.kv_heads),
        head_dim=_or(model.head_dim, preset.head_dim),
        weights_bytes=_weights(model, parameters, weight_dtype) if resized else preset.weights_bytes,
        weight_dtype=weight_dtype,
        kv_dtype=_or(model.kv_dtype, preset.kv_dtype),
    )
    facts = replace(facts, weights_bytes=_or(model.weights_bytes, facts.weights_bytes))
    return facts if facts == preset else replace(facts, snapshot_model="")


def _from_numbers(model: Model) -> ModelFacts:
    layers, kv_heads, head_dim = model.layers, model.kv_heads, model.head_dim
    sized = model.parameters_billions is not None or model.weights_bytes is not None
    if layers is None or kv_heads is None or head_dim is None or not sized:
        raise InvalidInput("ServingFleet", "spec.model.name", model.name, _missing(model, sized))
    weight_dtype = _or(model.weight_dtype, WeightDtype.BF16)
    by_bytes = _or(model.weights_bytes, 0) * 8 / BITS[weight_dtype]
    parameters = _parameters(model, by_bytes)
    return ModelFacts(
        name=model.name or "",
        parameters=parameters,
        active_parameters=parameters,
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        weights_bytes=_weights(model, parameters, weight_dtype),
        weight_dtype=weight_dtype,
        kv_dtype=_or(model.kv_dtype, KvDtype.BF16),
    )


def _or(given: T | None, default: T) -> T:
    return default if given is None else given


def _parameters(model: Model, default: float) -> float:
    return default if model.parameters_billions is None else float(model.parameters_billions * BILLION)


def _weights(model: Model, parameters: float, weight_dtype: str) -> float:
    return _or(model.weights_bytes, parameters * BITS[weight_dtype] / 8)


def _missing(model: Model, sized: bool) -> str:
    sizes = {"layers": model.layers, "kvHeads": model.kv_heads, "headDim": model.head_dim}
    absent = [f"spec.model.{name}" for name, value in sizes.items() if value is None]
    if not sized:
        absent.append("spec.model.parametersBillions or spec.model.weightsBytes")
    return f"no preset knows this model: set {', '.join(absent)}, or spec.model.preset to one of {preset_names()}"
