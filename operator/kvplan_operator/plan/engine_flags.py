"""The flags an engine is started with so that it keeps the plan: concurrency, KV memory, lengths, drain.

Inputs: the fleet and one planned configuration. Output: flags by name, values as plain text (vLLM reads
neither Kubernetes quantities nor units), without those that the fleet's version does not know; ``running_flags`` says
when the concurrency that runs is kept. Facts about vLLM 0.32 that each rule rests on stand beside it. Pure.

``max-num-active-seqs`` = max(1, floor(Q_k/r̄)) with Q_k = M_k − cached prefixes and r̄ = Σ n_ik·R̄_ik/Σ n_ik, capped by
S_k; R̄_ik is what a request with the mean prompt of its class reserves (docs/decisions/0009).
``kv-cache-memory-bytes`` pins M_k: an engine keeps one block for itself, so it is given M_k/B + 1 blocks of its largest
rank.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import KvDtype
from kvplan_operator.api.routing_plan import EngineFlag
from kvplan_operator.model.priors.model_presets import BITS, ModelFacts
from kvplan_operator.model.priors.models import resolve_model
from kvplan_operator.plan.engine_capabilities import knows
from kvplan_operator.plan.running_flags import with_running_limit
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ConfigurationInput

WATERMARK = "0.02"
"""Blocks kept free when admitting; what vLLM's own sweep found enough once κ bounds the concurrency."""
TOKEN_GRID = tuple(sorted([1, 2, 4, 8, *(16 << n for n in range(17)), *(24 << n for n in range(16))]))
"""Upper edges of the engine's length histograms, tokens: two per octave, the same on every group."""

_NOISE = 1e-9
"""Relative error of a mean; without it a whole number of sequences could come out one less."""


@dataclass(frozen=True)
class PlannedConfiguration:
    """One configuration with what the plan asks of it.

    Attributes:
        configuration: as solved.
        budget_tokens: Q_k.
        mean_reservation_tokens: r̄ over the requests in flight at mean prompts, tokens; 0 where nothing is routed to it.
        longest_request_tokens: longest prompt plus output that may come, tokens.
        in_flight: requests expected to run at once on one group.
        running: flags its groups run with, by name; empty where none run.
    """

    configuration: ConfigurationInput
    budget_tokens: int
    mean_reservation_tokens: float
    longest_request_tokens: int
    in_flight: float = 0.0
    running: Mapping[str, str] = field(default_factory=dict)

    @property
    def active_sequences(self) -> int:
        """Sequences that the reservations let run at once."""
        limit = self.configuration.max_sequences
        if self.mean_reservation_tokens <= 0:
            return limit
        fitting = self.budget_tokens / self.mean_reservation_tokens * (1 + _NOISE)
        return max(1, min(limit, math.floor(fitting)))


def engine_flags(fleet: ServingFleet, planned: PlannedConfiguration) -> tuple[EngineFlag, ...]:
    """Flags of one configuration's engines, by name."""
    flags = _shape(planned) | _lengths(fleet, planned) | _memory(fleet, planned) | _concurrency(fleet, planned)
    model = _model_facts(fleet)
    if (model.kv_dtype if model is not None else fleet.spec.model.kv_dtype) is KvDtype.FP8:
        flags["kv-cache-dtype"] = "fp8"
    known = {name: flags[name] for name in sorted(flags) if knows(fleet.spec.engine.version, name)}
    written = with_running_limit(known, planned.running, _limit(fleet), planned.in_flight)
    return tuple(EngineFlag(name=name, value=value) for name, value in written.items())


def _shape(planned: PlannedConfiguration) -> dict[str, str]:
    return {
        "tensor-parallel-size": str(planned.configuration.tensor_parallel),
        "pipeline-parallel-size": str(planned.configuration.pipeline_parallel),
    }


def _lengths(fleet: ServingFleet, planned: PlannedConfiguration) -> dict[str, str]:
    """An engine does not start if one sequence of max-model-len exceeds its KV cache."""
    wanted = fleet.spec.model.max_model_len or planned.longest_request_tokens
    longest = min(wanted, planned.configuration.kv_capacity_tokens)
    edges = [edge for edge in TOKEN_GRID if edge < longest] + [longest]
    return {
        "max-model-len": str(longest),
        "custom-histogram-buckets": json.dumps({"request_tokens": edges}, separators=(",", ":")),
    }


def _memory(fleet: ServingFleet, planned: PlannedConfiguration) -> dict[str, str]:
    block = fleet.spec.engine.block_tokens
    flags = {"block-size": str(block)}
    model = _model_facts(fleet)
    if model is None or not knows(fleet.spec.engine.version, "kv-cache-memory-bytes"):
        share = fleet.spec.engine.gpu_memory_utilization_milli
        return flags | {"gpu-memory-utilization": f"{share // 1000}.{share % 1000:03d}"}
    blocks = planned.configuration.kv_capacity_tokens // block + 1
    return flags | {"kv-cache-memory-bytes": str(blocks * block * _rank_bytes(model, planned.configuration))}


def _model_facts(fleet: ServingFleet) -> ModelFacts | None:
    """Sizes of the model; None where neither a preset nor the spec has them, which a measured fleet allows."""
    try:
        return resolve_model(fleet.spec.model)
    except InvalidInput:
        return None


def _rank_bytes(model: ModelFacts, configuration: ConfigurationInput) -> int:
    """KV bytes of one token on the GPU that holds most: whole layers per stage, whole heads per rank."""
    layers = -(-model.layers // configuration.pipeline_parallel)
    heads = max(1, -(-model.kv_heads // configuration.tensor_parallel))
    return 2 * layers * heads * model.head_dim * BITS[model.kv_dtype] // 8


def _limit(fleet: ServingFleet) -> str:
    """The flag that bounds active sequences: without one of its own, the engine's ceiling is the bound."""
    return "max-num-active-seqs" if knows(fleet.spec.engine.version, "max-num-active-seqs") else "max-num-seqs"


def _concurrency(fleet: ServingFleet, planned: PlannedConfiguration) -> dict[str, str]:
    ceiling = {"max-num-seqs": str(planned.configuration.max_sequences)}
    return ceiling | {
        _limit(fleet): str(planned.active_sequences),
        "watermark": WATERMARK,
        "shutdown-timeout": str(fleet.spec.rollout.drain_timeout_seconds),
    }
