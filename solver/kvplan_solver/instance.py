"""The solver's input: classes, configurations, nodes and weights, frozen and checked.

Symbols are those of the BCD-DRO paper; ``parameters.py`` lists each with unit, default and source. All
times are seconds, all lengths tokens, all rates per second, all costs in units of ``waste_cost``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.errors import InvalidInput

Floats = NDArray[np.float64]


class Ambiguity(StrEnum):
    """The set of output-length distributions a plan is robust against (02-solver §2)."""

    WASSERSTEIN_1 = "Wasserstein1"
    """Mean displacement of the samples at most ε tokens (equation (5))."""
    WASSERSTEIN_INF = "WassersteinInf"
    """Every sample displaced by at most ε tokens."""
    SCALE = "Scale"
    """All lengths multiplied by 1 + ε."""


@dataclass(frozen=True, eq=False)
class ClassInput:
    """One request class i.

    Attributes:
        name: unique among the classes.
        arrival_rate: λ, requests per second.
        input_tokens_mean: mean prompt length, used in T.
        input_tokens_p95: P95 prompt length, used in r and (6e).
        input_tokens_max: longest prompt, used for ``max-model-len``.
        shared_prefix_tokens: Lpre, leading tokens that all prompts of the class share.
        max_output_tokens: Lmax, end of the support of ξ.
        output_lengths: ξ̂, equally weighted samples in tokens, ascending, within [0, Lmax].
        latency_slo_seconds: D, bound on the mean response time.
        preemption_cost: cp per token of overflow.
        waste_cost: cw per token of unused reservation.
        latency_weight: c_slo per second above D.
        rejection_weight: c_rej per rejected request.
        radius: ε in tokens; for ``Scale`` a fraction.
        arrival_scv: Ca², squared coefficient of variation of the inter-arrival times (1 = Poisson).
    """

    name: str
    arrival_rate: float
    input_tokens_mean: float
    input_tokens_p95: int
    input_tokens_max: int
    shared_prefix_tokens: int
    max_output_tokens: int
    output_lengths: Floats
    latency_slo_seconds: float
    preemption_cost: float = 10.0
    waste_cost: float = 1.0
    latency_weight: float = 5.0
    rejection_weight: float = 5000.0
    radius: float = 0.0
    arrival_scv: float = 1.0

    def __post_init__(self) -> None:
        samples = np.array(self.output_lengths, dtype=np.float64)
        samples.setflags(write=False)
        object.__setattr__(self, "output_lengths", samples)
        _check_class(self)

    @property
    def fractile(self) -> float:
        """q = cp/(cp+cw), the critical fractile of Proposition IV.2."""
        return self.preemption_cost / (self.preemption_cost + self.waste_cost)

    @cached_property
    def output_tokens_mean(self) -> float:
        """E[ξ], tokens."""
        return float(self.output_lengths.mean())


@dataclass(frozen=True)
class ConfigurationInput:
    """One configuration k: how many GPUs a group takes and what it then can do.

    Attributes:
        name: unique among the configurations.
        tensor_parallel: τ, GPUs of one stage, always inside one node.
        pipeline_parallel: p, stages.
        kv_capacity_tokens: M, KV tokens of one group.
        prefill_seconds_per_token: α·p/C of (1).
        decode_seconds_per_token: β/B of (1), at the batch the plan implies.
        overhead_seconds: the communication term of (1) (printed form), per request.
        max_sequences: S, sequences a group runs at once (1 reproduces the paper's queue).
        gpu_product: the GPU product this configuration was sized for; empty means any.
        spans_nodes: whether the p stages may lie on different nodes (needs LeaderWorkerSet).
        service_seconds: measured T per class name; beats the equation.
    """

    name: str
    tensor_parallel: int
    pipeline_parallel: int
    kv_capacity_tokens: int
    prefill_seconds_per_token: float
    decode_seconds_per_token: float
    overhead_seconds: float = 0.0
    max_sequences: int = 1
    gpu_product: str = ""
    spans_nodes: bool = False
    service_seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_configuration(self)

    @property
    def gpus(self) -> int:
        """τ·p, GPUs of one group."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True)
class NodeInput:
    """One node: GPUs that this fleet may use (its own running groups counted as free)."""

    name: str
    free_gpus: int
    gpu_product: str = ""

    def __post_init__(self) -> None:
        _require_number(f"node {self.name}", self, "free_gpus")


@dataclass(frozen=True, order=True)
class GroupPlacement:
    """One group: the node of each of its p pipeline stages (one entry per stage, equal when on one node)."""

    configuration: str
    stages: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Instance:
    """One planning problem (equations (6a)–(7) with the decisions of 02-solver §1).

    Attributes:
        classes: I ≥ 1 classes.
        configurations: K ≥ 1 configurations.
        nodes: where groups can run; the GPU budget J is what the nodes have free (capped by ``max_gpus``).
        headroom_milli: κ in thousandths.
        gpu_second_cost: c_gpu per GPU-second of service.
        idle_gpu_second_cost: optional price per GPU-second of a running group, busy or not.
        switching_cost: optional price per second for each group that differs from ``running``.
        ambiguity: the set of distributions hedged against.
        max_utilisation: u_max of the queue, below 1.
        block_tokens: tokens of one KV block.
        max_gpus: cap on Σ z·τ·p; None means what the nodes have.
        min_gpus: floor on Σ z·τ·p.
        max_groups: cap on each z; None means what the nodes hold.
        running: groups that run now; used to stay where they are and for switching costs.
    """

    classes: tuple[ClassInput, ...]
    configurations: tuple[ConfigurationInput, ...]
    nodes: tuple[NodeInput, ...]
    headroom_milli: int = 200
    gpu_second_cost: float = 0.0
    idle_gpu_second_cost: float = 0.0
    switching_cost: float = 0.0
    ambiguity: Ambiguity = Ambiguity.WASSERSTEIN_1
    max_utilisation: float = 0.98
    block_tokens: int = 16
    max_gpus: int | None = None
    min_gpus: int = 0
    max_groups: int | None = None
    running: tuple[GroupPlacement, ...] = ()

    def __post_init__(self) -> None:
        _check_instance(self)

    @property
    def headroom(self) -> float:
        """κ as a fraction."""
        return self.headroom_milli / 1000

    @property
    def gpu_budget(self) -> int:
        """J, GPUs that groups may take in all."""
        free = sum(node.free_gpus for node in self.nodes)
        return free if self.max_gpus is None else min(free, self.max_gpus)

    @cached_property
    def running_counts(self) -> tuple[int, ...]:
        """z now, per configuration."""
        return tuple(
            sum(group.configuration == configuration.name for group in self.running)
            for configuration in self.configurations
        )


_LARGEST = 1e9
"""No number of an instance may be larger: the LP's arithmetic would mean nothing."""


def _require(condition: bool, subject: str, field_name: str, value: object, remedy: str) -> None:
    if not condition:
        raise InvalidInput(subject, field_name, value, remedy)


def _require_number(subject: str, owner: object, field_name: str, *, positive: bool = False) -> None:
    value = getattr(owner, field_name)
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    known = number and bool(abs(value) <= _LARGEST)
    remedy = f"use a number {'above 0' if positive else 'of 0 or more'}, at most {_LARGEST:g}"
    _require(known and bool(value > 0 if positive else value >= 0), subject, field_name, value, remedy)


def _check_class(c: ClassInput) -> None:
    subject = f"class {c.name}"
    _require(bool(c.name), "class", "name", c.name, "give every class a name")
    for name in ("arrival_rate", "input_tokens_mean", "input_tokens_p95", "input_tokens_max"):
        _require_number(subject, c, name)
    for name in ("shared_prefix_tokens", "latency_slo_seconds", "latency_weight", "rejection_weight"):
        _require_number(subject, c, name)
    for name in ("radius", "arrival_scv", "preemption_cost", "waste_cost"):
        _require_number(subject, c, name)
    _require_number(subject, c, "max_output_tokens", positive=True)
    _require(
        c.preemption_cost + c.waste_cost > 0, subject, "waste_cost", c.waste_cost,
        "preemption_cost and waste_cost must not both be 0",
    )  # fmt: skip
    prefix = c.shared_prefix_tokens
    _require(
        prefix <= c.input_tokens_mean, subject, "shared_prefix_tokens", prefix,
        f"a shared prefix is part of every prompt: use at most input_tokens_mean ({c.input_tokens_mean:g})",
    )  # fmt: skip
    _require(
        prefix <= c.input_tokens_p95, subject, "shared_prefix_tokens", prefix,
        f"a reservation holds its prefix: use at most input_tokens_p95 ({c.input_tokens_p95:g})",
    )  # fmt: skip
    _require(
        c.input_tokens_p95 <= c.input_tokens_max, subject, "input_tokens_p95", c.input_tokens_p95,
        f"use at most input_tokens_max ({c.input_tokens_max})",
    )  # fmt: skip
    _check_samples(subject, c.output_lengths, c.max_output_tokens)


def _check_samples(subject: str, samples: Floats, max_output_tokens: int) -> None:
    _require(
        samples.ndim == 1 and samples.size >= 1, subject, "output_lengths", f"array of shape {samples.shape}",
        "give at least one sample in one dimension",
    )  # fmt: skip
    bad = samples[~np.isfinite(samples)]
    _require(not bad.size, subject, "output_lengths", bad[:1].tolist(), "remove NaN and infinite samples")
    low, high = float(samples.min()), float(samples.max())
    _require(low >= 0, subject, "output_lengths", low, "lengths are 0 or more tokens")
    _require(
        high <= max_output_tokens, subject, "output_lengths", high,
        f"clip samples to max_output_tokens ({max_output_tokens}) first, see clip_samples",
    )  # fmt: skip
    _require(
        bool(np.all(np.diff(samples) >= 0)),
        subject,
        "output_lengths",
        "unsorted samples",
        "sort them ascending",
    )


def _check_configuration(c: ConfigurationInput) -> None:
    subject = f"configuration {c.name}"
    _require(bool(c.name), "configuration", "name", c.name, "give every configuration a name")
    for name in ("tensor_parallel", "pipeline_parallel", "max_sequences"):
        value = getattr(c, name)
        good = isinstance(value, int) and 1 <= value <= _LARGEST
        _require(good, subject, name, value, "use an integer of 1 or more")
    for name in (
        "prefill_seconds_per_token",
        "decode_seconds_per_token",
        "overhead_seconds",
        "kv_capacity_tokens",
    ):
        _require_number(subject, c, name)
    for class_name, seconds in c.service_seconds.items():
        good = 0 <= seconds <= _LARGEST
        _require(good, subject, f"service_seconds[{class_name}]", seconds, "use finite seconds of 0 or more")


def _check_unique(kind: str, names: Sequence[str]) -> None:
    for name in names:
        _require(names.count(name) == 1, kind, "name", name, "names must be unique")


def _check_instance(instance: Instance) -> None:
    _require(bool(instance.classes), "instance", "classes", 0, "give at least one class")
    _require(bool(instance.configurations), "instance", "configurations", 0, "give at least one configuration")
    _check_unique("class", [c.name for c in instance.classes])
    _check_unique("configuration", [c.name for c in instance.configurations])
    _check_unique("node", [n.name for n in instance.nodes])
    for name in ("headroom_milli", "gpu_second_cost", "idle_gpu_second_cost", "switching_cost", "min_gpus"):
        _require_number("instance", instance, name)
    utilisation = instance.max_utilisation
    _require(0 < utilisation < 1, "instance", "max_utilisation", utilisation, "use a fraction between 0 and 1")
    _require(instance.block_tokens >= 1, "instance", "block_tokens", instance.block_tokens, "use 1 or more tokens")
    if instance.max_gpus is not None:
        _require_number("instance", instance, "max_gpus")
    if instance.max_groups is not None:
        _require_number("instance", instance, "max_groups", positive=True)
    known = {c.name for c in instance.configurations}
    for group in instance.running:
        _require(
            group.configuration in known, "running group", "configuration", group.configuration,
            "drop groups whose configuration is no longer a candidate",
        )  # fmt: skip


def clip_samples(samples: Sequence[float] | Floats, max_output_tokens: int) -> tuple[Floats, int]:
    """Sort samples and clip them into [0, Lmax]; the count of clipped ones is for the report.

    Raises:
        InvalidInput: a NaN or infinite sample, which no clipping can mend.
    """
    values = np.sort(np.asarray(samples, dtype=np.float64))
    _require(bool(np.all(np.isfinite(values))), "samples", "value", "NaN or infinite", "remove it first")
    clipped = np.clip(values, 0.0, float(max_output_tokens))
    return clipped, int(np.count_nonzero(clipped != values))
