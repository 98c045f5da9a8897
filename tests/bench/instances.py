"""Instances for the benchmarks, at the sizes of the BCD-DRO paper's Table III and beyond.

Everything is generated from the seed; nothing is measured. A 70B model with 8-bit weights on 80 GB GPUs:
α = 140 GFLOP a prompt token at 312 TFLOP/s and 50 % use, β = 70 GB read per output token at 2 TB/s, whose
use falls with the tensor-parallel degree (0.8·τ^−0.15, so that neither small nor large groups always win),
2.5 MB of KV cache a token (the paper's figure), 80 layers at 20 µs per all-reduce (printed form). Output
lengths are lognormal around BurstGPT's (μ 3.476, σ 1.674), clipped at Lmax; each class differs.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.instance import ClassInput, ConfigurationInput, Instance, NodeInput, clip_samples

GPUS_PER_NODE = 8
PARALLELISM = (
    (2, 1), (4, 1), (2, 2), (4, 2), (8, 1), (1, 4), (2, 3), (2, 4), (1, 2), (1, 8), (1, 6), (1, 3),
    (1, 5), (1, 7),
)  # fmt: skip
"""(τ, p), the paper's four first; longer lists repeat them with other numbers of sequences."""


@dataclass(frozen=True)
class Size:
    """One benchmark size."""

    classes: int
    configurations: int
    samples: int
    gpus: int
    paper_seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.classes}x{self.configurations}x{self.samples}, {self.gpus} GPUs"


TABLE_III = (
    Size(3, 4, 100, 8, 0.17),
    Size(4, 4, 150, 8, 0.8),
    Size(5, 5, 200, 8, 4.3),
    Size(6, 6, 300, 16, 10.5),
    Size(8, 6, 500, 16, 22.4),
    Size(10, 8, 1000, 24, 81.2),
    Size(15, 12, 2000, 48, 257.7),
)
LARGE = (Size(30, 20, 10_000, 128), Size(100, 30, 10_000, 512))


def table_iii_instance(
    classes: int,
    configurations: int,
    samples: int,
    gpus: int,
    seed: int,
    *,
    max_sequences: int = 1,
    block_tokens: int = 1,
    load: float = 0.75,
) -> Instance:
    """One instance of a given size.

    Args:
        classes: I.
        configurations: K.
        samples: N per class.
        gpus: J, in nodes of eight.
        seed: of everything random.
        max_sequences: S of every configuration; 1 is the paper's queue, where memory hardly ever binds.
        block_tokens: tokens of one KV block.
        load: offered load as a share of what all GPUs serve in groups of two.
    """
    rng = np.random.default_rng([seed, classes, configurations, samples, gpus])
    options = tuple(_configuration(k, max_sequences) for k in range(configurations))
    drafts = [_draft(f"class-{i:02d}", samples, rng) for i in range(classes)]
    shares = rng.dirichlet(np.full(classes, 4.0))
    per_group = float(shares @ np.array([_seconds(c, options[0]) for c in drafts])) / options[0].max_sequences
    total = load * gpus / options[0].gpus / per_group
    return Instance(
        classes=tuple(_finish(c, total * share, options, rng) for c, share in zip(drafts, shares, strict=True)),
        configurations=options,
        nodes=tuple(
            NodeInput(f"node-{n:02d}", min(GPUS_PER_NODE, gpus - n * GPUS_PER_NODE))
            for n in range(-(-gpus // GPUS_PER_NODE))
        ),
        headroom_milli=200,
        gpu_second_cost=1.0,
        block_tokens=block_tokens,
    )


def _configuration(index: int, max_sequences: int) -> ConfigurationInput:
    tau, p = PARALLELISM[index % len(PARALLELISM)]
    again = index // len(PARALLELISM)
    kv_bytes = tau * p * (80e9 * 0.9 - 2e9) - 70e9
    return ConfigurationInput(
        name=f"tp{tau}-pp{p}" + (f"-v{again}" if again else ""),
        tensor_parallel=tau,
        pipeline_parallel=p,
        kv_capacity_tokens=int(kv_bytes / 2.5e6),
        # A repeated pair stands for another engine version: slower at the prompt, faster at decoding.
        prefill_seconds_per_token=140e9 / (tau * 312e12 * 0.5) * (1 + 0.2 * again),
        decode_seconds_per_token=70e9 / (tau * 2e12 * 0.8 * tau**-0.15) * (1 - 0.05 * again),
        overhead_seconds=80 * tau * 20e-6,
        max_sequences=max_sequences,
    )


@dataclass(frozen=True)
class _Draft:
    """A class before its rate and its latency target are known."""

    name: str
    prompt: int
    prefix: int
    limit: int
    lengths: np.ndarray[tuple[int], np.dtype[np.float64]]


def _draft(name: str, samples: int, rng: np.random.Generator) -> _Draft:
    limit = int(rng.choice([2048, 4096, 8192]))
    mu, sigma = 3.476 + rng.uniform(-0.6, 0.8), 1.674 * rng.uniform(0.6, 1.0)
    lengths, _ = clip_samples(np.round(rng.lognormal(mu, sigma, samples)), limit)
    prompt = int(rng.integers(200, 1200))
    return _Draft(name, prompt, int(prompt * rng.choice([0.0, 0.25, 0.5])), limit, lengths)


def _seconds(c: _Draft, k: ConfigurationInput) -> float:
    """T of (1), seconds."""
    prefill = k.prefill_seconds_per_token * c.prompt
    return prefill + k.decode_seconds_per_token * float(c.lengths.mean()) + k.overhead_seconds


def _finish(c: _Draft, rate: float, options: tuple[ConfigurationInput, ...], rng: np.random.Generator) -> ClassInput:
    """Add the rate, the target (between fast and slow service) and the paper's costs."""
    return ClassInput(
        name=c.name,
        arrival_rate=float(rate),
        input_tokens_mean=float(c.prompt),
        input_tokens_p95=2 * c.prompt,
        input_tokens_max=3 * c.prompt,
        shared_prefix_tokens=c.prefix,
        max_output_tokens=c.limit,
        output_lengths=c.lengths,
        latency_slo_seconds=float(_seconds(c, options[0]) * rng.uniform(0.6, 2.5)),
        preemption_cost=10.0,
        waste_cost=1.0,
        latency_weight=5.0,
        rejection_weight=5000.0,
        radius=0.15 * float(c.lengths.mean()),
    )
