"""The formula prior: capacity and speeds of a group from data sheet and model size (02-solver §1).

- M_k = (gpu bytes·util·τ·p − weights − activations)/KV bytes per token; no rank holds less than one KV head.
- C_k = τ·p·flops·mfu; one prompt token costs 2·active parameters operations, and p stages work on it in turn,
  so α·p/C = 2·P/(τ·flops·mfu). The prompts of the n − 1 other sequences run while one is served.
- B_k = τ·bandwidth·efficiency; a step reads the weights once and the KV of every running sequence.
- Communication, physical form: 2·N_L·(τ−1)/τ·t_ar per step; printed form: N_L·τ·t_ar per request.

Inputs: ``ModelFacts``, ``GpuPreset``, τ, p, ``Assumptions``. Outputs: KV tokens and a ``SpeedCurve``.
Must not: be believed before a measurement or an estimate; errors against the snapshot stand in
docs/decisions/0004-hardware-priors.md.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from kvplan_operator.api.fleet_enums import WeightDtype
from kvplan_operator.model.priors.gpus import GIB, GpuPreset
from kvplan_operator.model.priors.model_presets import ModelFacts
from kvplan_solver.speed_curve import SpeedCurve, Speeds

BATCH_GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Communication(StrEnum):
    """Form of the communication term of (1)."""

    PHYSICAL = "Physical"
    PRINTED = "Printed"


@dataclass(frozen=True)
class Assumptions:
    """What no data sheet says.

    mfu and t_ar were picked on a coarse grid as the nearest to the snapshot; the other defaults are the
    estimator's or the engine's own.

    Attributes:
        memory_utilisation: share of GPU memory the engine may use (vLLM's gpu-memory-utilization, 0.9).
        reserve_bytes: activations, runtime and communication buffers of one GPU; 5 GiB is what the
            estimator of the snapshot reserves for 32-billion-parameter models at 8,192 batched tokens.
        compute_efficiency: mfu, share of the dense rate that prefill reaches.
        bandwidth_efficiency: share of the memory bandwidth that decode reaches (0.8 in the estimator).
        all_reduce_seconds: t_ar, one all-reduce.
        dispatch_seconds_per_layer: host time per layer of a prefill (0.8 ms in the estimator's vLLM model).
        context_tokens: mean length of a running sequence, for the KV a step reads.
        communication: form of the communication term.
        engine_max_sequences: sequences the engine runs at most when nothing else limits it.
    """

    memory_utilisation: float = 0.9
    reserve_bytes: float = 5.0 * GIB
    compute_efficiency: float = 0.5
    bandwidth_efficiency: float = 0.8
    all_reduce_seconds: float = 30e-6
    dispatch_seconds_per_layer: float = 0.8e-3
    context_tokens: float = 2000.0
    communication: Communication = Communication.PHYSICAL
    engine_max_sequences: int = 256


@dataclass(frozen=True)
class Group:
    """One group to size: model, GPU, τ and p."""

    model: ModelFacts
    gpu: GpuPreset
    tensor_parallel: int
    pipeline_parallel: int = 1

    @property
    def gpus(self) -> int:
        """τ·p."""
        return self.tensor_parallel * self.pipeline_parallel


def free_bytes(group: Group, assumed: Assumptions) -> float:
    """Bytes left for KV in one group; negative where the weights do not fit."""
    per_gpu = group.gpu.memory_bytes * assumed.memory_utilisation - assumed.reserve_bytes
    return per_gpu * group.gpus - group.model.weights_bytes


def kv_capacity_tokens(group: Group, assumed: Assumptions) -> int:
    """M_k, KV tokens of one group; 0 or less where the weights do not fit."""
    return math.floor(free_bytes(group, assumed) / group.model.kv_bytes_per_token(group.tensor_parallel))


def formula_curve(group: Group, assumed: Assumptions) -> SpeedCurve:
    """Speeds over the batch: seconds per prompt token, per output token and per request."""
    speeds = [formula_speeds(group, assumed, batch) for batch in BATCH_GRID]
    return SpeedCurve.of(
        BATCH_GRID,
        [speed.prefill_seconds_per_token for speed in speeds],
        [speed.decode_seconds_per_token for speed in speeds],
        [speed.overhead_seconds for speed in speeds],
    )


def formula_speeds(group: Group, assumed: Assumptions, batch: float) -> Speeds:
    """Speeds at one batch n of sequences in a group; n/p of them are in each stage."""
    in_stage = batch / group.pipeline_parallel
    others = max(0.0, batch - 1.0) / group.pipeline_parallel
    step, request = communication_seconds(group, assumed)
    dispatch = assumed.dispatch_seconds_per_layer * group.model.layers
    return Speeds(
        prefill_seconds_per_token=token_compute_seconds(group, assumed) * (1.0 + others),
        decode_seconds_per_token=_step_seconds(group, assumed, in_stage) + step,
        overhead_seconds=dispatch + step + request,
    )


def token_compute_seconds(group: Group, assumed: Assumptions) -> float:
    """p/C_k per token: 2·active parameters operations on the τ GPUs of each stage in turn."""
    return 2.0 * group.model.active_parameters / (
        group.tensor_parallel * _flops(group) * assumed.compute_efficiency
    )  # fmt: skip


def communication_seconds(group: Group, assumed: Assumptions) -> tuple[float, float]:
    """Seconds of communication per step and per request; one of them is 0, by the form."""
    tau, layers = group.tensor_parallel, group.model.layers
    if assumed.communication is Communication.PRINTED:
        return 0.0, layers * tau * assumed.all_reduce_seconds
    return 2.0 * layers * (tau - 1) / tau * assumed.all_reduce_seconds, 0.0


def default_max_sequences(
    kv_capacity_tokens: float, mean_reservation_tokens: float, headroom: float, engine_limit: int = 256
) -> int:
    """S_k when nobody set it: floor(M_k/((1+κ)·r̄)), at least 1 and at most the engine's own limit.

    Args:
        kv_capacity_tokens: M_k, tokens.
        mean_reservation_tokens: r̄, mean reservation of a request, tokens; 0 leaves the engine's limit.
        headroom: κ as a fraction.
        engine_limit: sequences the engine runs at most.
    """
    if mean_reservation_tokens <= 0:
        return engine_limit
    by_memory = math.floor(kv_capacity_tokens / ((1.0 + headroom) * mean_reservation_tokens))
    return max(1, min(engine_limit, by_memory))


def _step_seconds(group: Group, assumed: Assumptions, in_stage: float) -> float:
    """One decode step: reading weights and KV, or computing, whichever is slower."""
    bandwidth = group.tensor_parallel * group.gpu.bandwidth * assumed.bandwidth_efficiency
    context = in_stage * assumed.context_tokens * group.model.kv_bytes_per_token(group.tensor_parallel)
    reading = (_weights_read(group.model, in_stage) + context) / bandwidth
    return max(reading, in_stage * token_compute_seconds(group, assumed))


def _weights_read(model: ModelFacts, sequences: float) -> float:
    """Bytes of weights a step reads: every sequence may wake other experts, up to all of them."""
    active = model.weights_bytes * model.active_parameters / model.parameters
    return min(model.weights_bytes, max(1.0, sequences) * active)


def _flops(group: Group) -> float:
    if group.model.weight_dtype == WeightDtype.FP8 and group.gpu.fp8_flops is not None:
        return group.gpu.fp8_flops
    return group.gpu.bf16_flops
