"""The estimator library behind the snapshot of hardware priors: one group, its latencies and its KV memory.

Needs: the extra ``kvplan[priors]`` (no GPU, no network). Inputs: model, system, τ; batch and lengths.
Outputs: seconds and tokens. Must not: be imported where the extra may be missing.
"""

from dataclasses import dataclass

from aiconfigurator_core.sdk import estimate_kv_cache
from aiconfigurator_core.sdk.backends.factory import get_backend
from aiconfigurator_core.sdk.config import RuntimeConfig
from aiconfigurator_core.sdk.config_builders import build_model_config
from aiconfigurator_core.sdk.models import get_model
from aiconfigurator_core.sdk.perf_database import get_database

BACKEND = "vllm"
MEMORY_UTILISATION_MILLI = 900
BATCHED_TOKENS = 8192
MAX_SEQUENCES = 256
SYSTEMS = {  # system → version of the vLLM data set, the library's "current" one
    "a100_sxm": "0.14.0",
    "b200_sxm": "0.24.0",
    "h100_sxm": "0.24.0",
    "h200_sxm": "0.24.0",
    "l40s": "0.24.0",
}
MIXTURE_MODELS = ("Qwen/Qwen3-30B-A3B",)


@dataclass(frozen=True)
class Target:
    """One group to estimate; experts of a mixture are split like the rest of the model."""

    model: str
    system: str
    tensor_parallel: int

    @property
    def expert_parallel(self) -> int:
        """Tensor parallelism of the experts; 1 for a dense model."""
        return self.tensor_parallel if self.model in MIXTURE_MODELS else 1


@dataclass(frozen=True)
class Latency:
    """Seconds to the first token and per further token."""

    first_token_seconds: float
    token_seconds: float


class Estimator:
    """The library's estimate of one group under continuous batching, whole prompts per prefill step."""

    def __init__(self, target: Target) -> None:
        self._target = target
        database = get_database(target.system, BACKEND, SYSTEMS[target.system])
        if database is None:
            raise ValueError(f"no data for {target.system}, {BACKEND} {SYSTEMS[target.system]}")
        self._database = database
        config = build_model_config(target.tensor_parallel, 1, 1, target.expert_parallel, 1)
        self._model = get_model(target.model, config, BACKEND)
        # The backend caches results without the model in the key: one backend per target.
        self._backend = get_backend(BACKEND)

    def latency(self, batch: int, input_tokens: int, output_tokens: int) -> Latency:
        """Latencies at one batch and length; seconds."""
        runtime = RuntimeConfig(batch_size=batch, isl=input_tokens, osl=output_tokens)
        summary = self._backend.run_agg(self._model, self._database, runtime, ctx_tokens=input_tokens)
        result = summary.get_result_dict() or {}
        return Latency(float(result["ttft"]) / 1000, float(result["tpot"]) / 1000)

    def kv_capacity_tokens(self) -> int:
        """KV tokens of one group.

        Raises:
            ValueError: the weights leave no room.
        """
        estimate = estimate_kv_cache(
            self._target.model,
            self._target.system,
            BACKEND,
            SYSTEMS[self._target.system],
            max_num_tokens=BATCHED_TOKENS,
            max_batch_size=MAX_SEQUENCES,
            memory_fraction_kind="of_total",
            memory_fraction_value=MEMORY_UTILISATION_MILLI / 1000,
            tp_size=self._target.tensor_parallel,
            moe_tp_size=self._target.expert_parallel,
            moe_ep_size=1,
        )
        return int(estimate["total_kv_size_tokens"])
