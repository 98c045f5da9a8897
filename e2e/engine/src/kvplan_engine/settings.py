"""What an engine is built from: parsed flags turned into sizes, limits and speeds.

Inputs: the parser's namespace, and the model's ``config.json`` where the model is a directory.
Raises ValueError (exit 1, as vLLM's own checks) on combinations that no engine starts with.
"""

import json
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from kvplan_engine.arguments.values import AUTO_LENGTH
from kvplan_engine.core.limits import Limits, Policy
from kvplan_engine.core.sizing import KvCache, ModelShape, kv_cache
from kvplan_engine.core.step_time import StepTime

PLUGIN_PACKAGE = "kvplan_vllm"
"""A ``--scheduler-cls`` from here stands for the reservation plugin."""
BUCKET_FAMILIES = frozenset(
    {"request_tokens", "request_latency", "time_to_first_token", "inter_token_latency", "iteration_tokens"}
)
_DEFAULT_LENGTH = 2048
_SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_size")
"""What a model's ``config.json`` must have."""


@dataclass(frozen=True)
class Settings:
    """One engine's settings.

    Attributes:
        flags: the parsed command line.
        cache: the KV cache.
        limits: what bounds a step.
        speed: how long a step takes.
    """

    flags: Namespace
    cache: KvCache
    limits: Limits
    speed: StepTime

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names the model is served under; metrics carry the first."""
        return tuple(self.flags.served_model_name or (self.flags.model,))


def settings_of(flags: Namespace) -> Settings:
    """Settings of a parsed command line.

    Raises:
        ValueError: two flags contradict each other, or a name is unknown.
        DoesNotFit: one sequence of the longest length exceeds the KV cache.
    """
    _check(flags)
    config = _model_config(flags.model)
    shape = _shape(config, flags)
    blocks = flags.num_gpu_blocks_override or _kv_bytes(flags) // _block_bytes(shape, flags)
    cache = kv_cache(blocks, flags.block_size, _longest(config, flags))
    return Settings(flags, cache, _limits(flags, cache), _speed(flags))


def _check(flags: Namespace) -> None:
    active = flags.max_num_active_seqs
    if active is not None and active > flags.max_num_seqs:
        raise ValueError(f"max_num_active_seqs ({active}) must not exceed max_num_seqs ({flags.max_num_seqs}).")
    if flags.scheduler_cls and flags.scheduler_cls.split(".")[0] != PLUGIN_PACKAGE:
        raise ValueError(f"cannot import scheduler_cls {flags.scheduler_cls!r}: only {PLUGIN_PACKAGE} is known here.")
    unknown = sorted(set(flags.custom_histogram_buckets) - BUCKET_FAMILIES)
    if unknown:
        raise ValueError(f"custom_histogram_buckets: unknown {unknown}; known are {sorted(BUCKET_FAMILIES)}.")


def _model_config(model: str) -> dict[str, int]:
    """The model's ``config.json``; empty where the model is no directory that has one."""
    path = Path(model) / "config.json"
    if not path.is_file():
        return {}
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ValueError(f"{path} must be a JSON object, not a {type(config).__name__}.")  # noqa: TRY004  (exit 1)
    sizes = {name: value for name, value in config.items() if type(value) is int and value > 0}
    missing = [name for name in _SIZES if name not in sizes]
    if missing:
        raise ValueError(f"{path} lacks {missing}: each must be a positive integer.")
    return sizes


def _shape(config: dict[str, int], flags: Namespace) -> ModelShape:
    layers, heads, head_dim, value_bytes = flags.stand_in_model_shape
    if (flags.kv_cache_dtype or "").startswith("fp8"):
        value_bytes = 1
    if not config:
        return ModelShape(layers, heads, head_dim, value_bytes)
    attention_heads = config["num_attention_heads"]
    return ModelShape(
        layers=config["num_hidden_layers"],
        kv_heads=config.get("num_key_value_heads", attention_heads),
        head_dim=config.get("head_dim", config["hidden_size"] // attention_heads),
        value_bytes=value_bytes,
    )


def _kv_bytes(flags: Namespace) -> int:
    """KV bytes per GPU: what was asked for, else the allowed share of the device less the weights on it."""
    if flags.kv_cache_memory_bytes is not None:
        return int(flags.kv_cache_memory_bytes)
    ranks = flags.tensor_parallel_size * flags.pipeline_parallel_size
    allowed = int(flags.stand_in_gpu_memory_bytes * flags.gpu_memory_utilization)
    return max(0, allowed - int(flags.stand_in_weight_bytes // ranks))


def _block_bytes(shape: ModelShape, flags: Namespace) -> int:
    return shape.token_bytes(flags.tensor_parallel_size, flags.pipeline_parallel_size) * int(flags.block_size)


def _longest(config: dict[str, int], flags: Namespace) -> int | None:
    """``--max-model-len``, else what the model was made for; None is the longest that fits."""
    if flags.max_model_len is None:
        return config.get("max_position_embeddings", _DEFAULT_LENGTH)
    return None if flags.max_model_len == AUTO_LENGTH else int(flags.max_model_len)


def _limits(flags: Namespace, cache: KvCache) -> Limits:
    return Limits(
        blocks=cache.blocks,
        block_tokens=cache.block_tokens,
        max_running=flags.max_num_active_seqs or flags.max_num_seqs,
        max_batched_tokens=flags.max_num_batched_tokens,
        max_model_len=cache.max_model_len,
        long_prefill_tokens=flags.long_prefill_token_threshold,
        watermark=flags.watermark,
        prefix_caching=flags.enable_prefix_caching,
        chunked_prefill=flags.enable_chunked_prefill,
        whole_prompt=flags.scheduler_reserve_full_isl,
        reservations=bool(flags.scheduler_cls),
        policy=Policy(flags.scheduling_policy),
    )


def _speed(flags: Namespace) -> StepTime:
    return StepTime(
        base_seconds=flags.stand_in_step_milliseconds / 1000,
        answer_seconds=flags.stand_in_answer_milliseconds / 1000,
        prefill_tokens_per_second=flags.stand_in_prefill_tokens_per_second,
        tensor_parallel=flags.tensor_parallel_size,
        pipeline_parallel=flags.pipeline_parallel_size,
        scaling=flags.stand_in_scaling,
        time_scale=flags.stand_in_time_scale,
    )
