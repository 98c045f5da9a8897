"""Small instances for tests, each argument spelled only where a test cares."""

from collections.abc import Sequence

import numpy as np

from kvplan_solver.instance import ClassInput, ConfigurationInput, NodeInput


def a_class(name: str = "chat", *, lengths: Sequence[float] = (40, 80, 120, 400), **changes: object) -> ClassInput:
    """A class of short prompts at two requests per second."""
    values: dict[str, object] = {
        "arrival_rate": 2.0,
        "input_tokens_mean": 100.0,
        "input_tokens_p95": 128,
        "input_tokens_max": 256,
        "shared_prefix_tokens": 0,
        "max_output_tokens": 512,
        "latency_slo_seconds": 30.0,
    }
    return ClassInput(name=name, output_lengths=np.sort(np.array(lengths, dtype=float)), **(values | changes))  # type: ignore[arg-type]


def a_configuration(name: str = "tp1", **changes: object) -> ConfigurationInput:
    """One GPU, 20,000 KV tokens, 16 sequences, about 1.7 s for the class above."""
    values: dict[str, object] = {
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "kv_capacity_tokens": 20_000,
        "prefill_seconds_per_token": 0.0002,
        "decode_seconds_per_token": 0.01,
        "max_sequences": 16,
    }
    return ConfigurationInput(name=name, **(values | changes))  # type: ignore[arg-type]


def nodes(*free: int, product: str = "") -> tuple[NodeInput, ...]:
    """Nodes n0, n1, … with the given free GPUs."""
    return tuple(NodeInput(f"n{number}", gpus, product) for number, gpus in enumerate(free))
