"""The values that go into and come out of resolving one configuration. Pure data."""

from dataclasses import dataclass, field
from math import isfinite

from kvplan_operator.api.fleet_engine import Configuration, Model
from kvplan_operator.model.priors.formula import Assumptions
from kvplan_operator.model.priors.profile import Profile
from kvplan_operator.model.priors.source import Sourced
from kvplan_solver.errors import InvalidInput
from kvplan_solver.speed_curve import SpeedCurve


@dataclass(frozen=True)
class Measurement:
    """What the fleet's own groups of a configuration were seen to do; None means not seen.

    Attributes:
        kv_capacity_tokens: M_k as the engine reports it, tokens.
        prefill_seconds_per_token: seconds per prompt token.
        decode_seconds_per_token: seconds per output token at the batch that ran.
        batch: sequences per group that ran while speeds were measured; None takes the speeds for every batch.

    Raises:
        InvalidInput: a value that is 0, negative or not finite; no measurement is not 0.
    """

    kv_capacity_tokens: int | None = None
    prefill_seconds_per_token: float | None = None
    decode_seconds_per_token: float | None = None
    batch: float | None = None

    def __post_init__(self) -> None:
        for name in ("kv_capacity_tokens", "prefill_seconds_per_token", "decode_seconds_per_token", "batch"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise InvalidInput("measurement", name, value, "leave out what was not measured")


@dataclass(frozen=True)
class PriorRequest:
    """Everything that decides what one configuration can do.

    Attributes:
        model: ``spec.model``.
        configuration: one of ``spec.configurations``.
        gpu_product: ``nvidia.com/gpu.product`` of the nodes it would run on.
        gpu_preset: ``spec.nodes.gpuPreset``; beats the label.
        measured: what the fleet was seen to do.
        mean_reservation_tokens: r̄ over the classes, tokens; for the default of maxSequences.
        headroom: κ as a fraction.
        assumptions: what no data sheet says.
    """

    model: Model
    configuration: Configuration
    gpu_product: str
    gpu_preset: str | None = None
    measured: Measurement = Measurement()
    mean_reservation_tokens: float = 0.0
    headroom: float = 0.2
    assumptions: Assumptions = field(default_factory=Assumptions)


@dataclass(frozen=True, eq=False)
class ResolvedConfiguration:
    """What one configuration can do and how that is known.

    Attributes:
        configuration: as in the spec.
        kv_capacity_tokens: M_k, tokens.
        max_sequences: S_k.
        prefill: source of the curve's prefill column; value in seconds per prompt token at batch 1.
        decode: source of its decode column; value in seconds per output token at batch 1.
        curve: coefficients of (1) over the batch.
        profile: latencies the curve was fitted to, where it came from the snapshot.
    """

    configuration: Configuration
    kv_capacity_tokens: Sourced
    max_sequences: Sourced
    prefill: Sourced
    decode: Sourced
    curve: SpeedCurve
    profile: Profile | None


@dataclass(frozen=True)
class UnusableConfiguration:
    """A configuration that cannot run at all, and why, in a sentence with the remedy."""

    configuration: Configuration
    reason: str
