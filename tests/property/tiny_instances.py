"""Random instances small enough for full enumeration, aimed at the regimes in which a method can go wrong."""

import numpy as np

from kvplan_solver.instance import (
    Ambiguity,
    ClassInput,
    ConfigurationInput,
    GroupPlacement,
    Instance,
    NodeInput,
    clip_samples,
)

REGIMES = (
    "ample",
    "binding memory",
    "binding latency",
    "scarce GPUs",
    "mixed nodes",
    "rejection pays",
    "many sequences",
    "shared prefixes",
    "priced partition",
    "other ambiguity",
)
"""What a seed is about: ``REGIMES[seed % 10]``. κ, costs, radii and lengths vary in all of them."""


def regime_of(seed: int) -> str:
    """The regime a seed draws from."""
    return REGIMES[seed % len(REGIMES)]


def random_tiny_instance(seed: int) -> Instance:
    """One to three classes, one to three configurations, at most six GPUs, blocks of 4 tokens."""
    rng, regime = np.random.default_rng(seed), regime_of(seed)
    configurations = _configurations(rng, regime)
    classes = _classes(rng, regime, configurations)
    nodes = _nodes(rng, regime)
    priced = regime == "priced partition"
    running = tuple(
        GroupPlacement(k.name, (nodes[0].name,) * k.pipeline_parallel) for k in configurations[:1] if priced
    )
    free = sum(n.free_gpus for n in nodes)
    return Instance(
        classes=classes,
        configurations=configurations,
        nodes=nodes,
        headroom_milli=int(rng.choice([0, 200, 500])),
        gpu_second_cost=float(rng.choice([0.0, 1.0, 5.0])),
        idle_gpu_second_cost=float(rng.choice([0.1, 2.0])) if priced else 0.0,
        switching_cost=float(rng.choice([0.0, 3.0])) if priced else 0.0,
        ambiguity=_ambiguity(rng, regime),
        max_utilisation=float(rng.choice([0.9, 0.98])),
        block_tokens=4,
        max_gpus=max(0, free - 1) if priced else None,
        min_gpus=int(rng.integers(0, 2)) if priced else 0,
        running=running,
    )


def _configurations(rng: np.random.Generator, regime: str) -> tuple[ConfigurationInput, ...]:
    shapes = [(1, 1), (2, 1), (1, 2), (4, 1)]
    count = int(rng.integers(1, 4)) if regime != "shared prefixes" else int(rng.integers(1, 3))
    chosen = sorted(rng.choice(len(shapes), size=count, replace=False))
    sequences = int(rng.choice([2, 4, 8])) if regime in ("many sequences", "binding memory") else 1
    per_gpu = int(rng.integers(30, 90)) if regime == "binding memory" else int(rng.integers(90, 300))
    return tuple(
        ConfigurationInput(
            name=f"tp{tau}-pp{p}",
            tensor_parallel=tau,
            pipeline_parallel=p,
            kv_capacity_tokens=per_gpu * tau * p,
            prefill_seconds_per_token=float(rng.uniform(0.001, 0.01)) / tau,
            decode_seconds_per_token=float(rng.uniform(0.02, 0.08)) / tau**0.85,
            overhead_seconds=0.01 * tau,
            max_sequences=sequences,
            spans_nodes=p > 1 and bool(rng.random() < 0.5),
            service_seconds={"class-0": float(rng.uniform(0.2, 1.0))} if rng.random() < 0.15 else {},
        )
        for tau, p in (shapes[int(n)] for n in chosen)
    )


def _classes(
    rng: np.random.Generator, regime: str, configurations: tuple[ConfigurationInput, ...]
) -> tuple[ClassInput, ...]:
    count = 1 + int(rng.random() < 0.75) + int(regime == "ample" and rng.random() < 0.3)
    load = {"ample": 0.3, "scarce GPUs": 3.0, "rejection pays": 1.5}.get(regime, 1.0)
    return tuple(_class(rng, regime, i, load / count, configurations) for i in range(count))


def _class(
    rng: np.random.Generator,
    regime: str,
    index: int,
    load: float,
    configurations: tuple[ConfigurationInput, ...],
) -> ClassInput:
    limit = int(rng.choice([12, 24, 40]))
    lengths, _ = clip_samples(np.round(rng.lognormal(2.0, 0.9, int(rng.integers(1, 7)))), limit)
    prompt = int(rng.integers(0, 30))
    prefix = prompt if rng.random() < 0.3 else prompt // 2
    first = configurations[0]
    seconds = first.prefill_seconds_per_token * prompt + first.decode_seconds_per_token * float(lengths.mean())
    slots = first.max_sequences * 4 / first.gpus
    rate = 0.0 if rng.random() < 0.05 else load * rng.uniform(0.3, 1.2) * slots / max(0.05, seconds)
    return ClassInput(
        name=f"class-{index}",
        arrival_rate=float(rate),
        input_tokens_mean=float(prompt),
        input_tokens_p95=prompt + int(rng.integers(0, 6)),
        input_tokens_max=prompt + 8,
        shared_prefix_tokens=prefix if regime in ("shared prefixes", "binding memory") else 0,
        max_output_tokens=limit,
        output_lengths=lengths,
        latency_slo_seconds=seconds * float(rng.uniform(0, 1) if regime == "binding latency" else rng.uniform(1, 4)),
        preemption_cost=float(rng.choice([0.5, 1.0, 10.0, 30.0])),
        waste_cost=float(rng.choice([0.5, 1.0, 2.0])),
        latency_weight=float(rng.choice([5.0, 50.0]) if regime != "binding latency" else rng.choice([50.0, 200.0])),
        rejection_weight=float(rng.uniform(5, 40) if regime == "rejection pays" else rng.choice([300.0, 5000.0])),
        radius=_radius(rng, regime, float(lengths.mean())),
        arrival_scv=float(rng.choice([1.0, 1.0, 4.0])),
    )


def _radius(rng: np.random.Generator, regime: str, mean: float) -> float:
    if regime == "other ambiguity":
        return float(rng.choice([0.0, 0.2, 1.0]))
    return float(rng.choice([0.0, 0.15, 1.0])) * mean


def _ambiguity(rng: np.random.Generator, regime: str) -> Ambiguity:
    if regime != "other ambiguity":
        return Ambiguity.WASSERSTEIN_1
    return (Ambiguity.WASSERSTEIN_INF, Ambiguity.SCALE)[int(rng.integers(2))]


def _nodes(rng: np.random.Generator, regime: str) -> tuple[NodeInput, ...]:
    sizes = {"scarce GPUs": [1, 1], "mixed nodes": [3, 1, 2]}.get(regime, [4])
    if regime == "scarce GPUs" and rng.random() < 0.3:
        sizes = [0, 1]
    return tuple(NodeInput(f"node-{n}", size) for n, size in enumerate(sizes))
