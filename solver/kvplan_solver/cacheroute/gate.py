"""Whether affinity is worth switching on: the work ratio G, its uncertainty, and a gate with hysteresis.

In: the router's token-weighted reuse-gap histogram and the engines' counters. Out: G = w_flat/w_aff ± and a
state. Affinity loses where little prefix work can be recovered, so without data it stays off. Must not guess
a missing measurement. Source: 03-cacheroute §3; the revisit time R/λ of equation (1) of CacheRoute.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from kvplan_solver.cacheroute.inputs import Floats, require, require_number, require_numbers

ON_AT = 1.5
OFF_BELOW = 1.3
WINDOW_UNCERTAINTY = 0.25
"""Relative uncertainty of the eviction window, by which G ± is computed."""


class AffinityState(StrEnum):
    """What the gate says; a metric label."""

    ON = "On"
    OFF = "Off"
    SHADOW_REPLAY = "ShadowReplay"
    """Undecided: replay real traffic against the candidate table before switching on."""
    UNKNOWN = "Unknown"
    """No data: off."""


@dataclass(frozen=True, eq=False)
class ReuseSample:
    """What one measurement window saw.

    Attributes:
        gap_seconds: time since the same key's last request anywhere, one value per bucket, ascending.
        tokens: reusable prompt tokens that met that gap, per bucket.
        other_tokens: all other work in tokens of prefill: first uses, unshared prompt parts, decode.
        destinations: R, destinations a flat balancer spreads over.
        eviction_window_seconds: how long an idle prefix survives in one cache.
        measured_flat_hit: share of ``tokens`` the engines served from cache while affinity was off;
            None where not measured, then the revisit model stands in.
    """

    gap_seconds: Floats
    tokens: Floats
    other_tokens: float
    destinations: int
    eviction_window_seconds: float
    measured_flat_hit: float | None = None

    def __post_init__(self) -> None:
        require(
            self.gap_seconds.shape == self.tokens.shape, "reuse sample", "tokens", self.tokens.shape,
            f"give one value for each of {self.gap_seconds.size} gaps",
        )  # fmt: skip
        for name in ("other_tokens", "eviction_window_seconds"):
            require_number("reuse sample", name, getattr(self, name))
        for name in ("gap_seconds", "tokens"):
            require_numbers("reuse sample", name, getattr(self, name))
        require(self.destinations >= 1, "reuse sample", "destinations", self.destinations, "use 1 or more")


@dataclass(frozen=True)
class WorkRatio:
    """G and how far it may be off."""

    value: float
    margin: float


def work_ratio(sample: ReuseSample | None) -> WorkRatio | None:
    """G = w_flat/w_aff; None where nothing was measured.

    The work of a policy is ``other_tokens`` plus the reusable tokens it has to compute again. The margin is
    the larger change of G when the eviction window is 25 % off.
    """
    if sample is None or sample.tokens.sum() + sample.other_tokens <= 0:
        return None
    value = _ratio(sample)
    window = sample.eviction_window_seconds
    off = [replace(sample, eviction_window_seconds=window * (1 + sign * WINDOW_UNCERTAINTY)) for sign in (-1, 1)]
    return WorkRatio(value, max(abs(_ratio(other) - value) for other in off))


def _ratio(sample: ReuseSample) -> float:
    total = float(sample.tokens.sum())
    flat = total - _flat_hits(sample)
    affinity = total - float(sample.tokens @ _survives(sample))
    work = affinity + sample.other_tokens
    return (flat + sample.other_tokens) / work if work > 0 else float("inf")


def _survives(sample: ReuseSample) -> Floats:
    """Whether a prefix used again after each gap is still in the cache that holds it."""
    return np.asarray(sample.gap_seconds <= sample.eviction_window_seconds, dtype=np.float64)


def _flat_hits(sample: ReuseSample) -> float:
    """Tokens a flat balancer serves from cache: measured, else 1 − (1 − 1/R)^(visits within the window)."""
    if sample.measured_flat_hit is not None:
        return float(sample.tokens.sum()) * sample.measured_flat_hit
    gap = np.maximum(sample.gap_seconds, 1e-9)
    visits = np.floor(sample.eviction_window_seconds / gap)
    missed = (1.0 - 1.0 / sample.destinations) ** visits
    return float(sample.tokens @ (1.0 - missed))


def affinity_state(ratio: WorkRatio | None, before: AffinityState) -> AffinityState:
    """On from G ≥ 1.5, Off below 1.3; between them On stays On and anything else replays in the shadow."""
    if ratio is None:
        return AffinityState.UNKNOWN
    if ratio.value >= ON_AT:
        return AffinityState.ON
    if ratio.value < OFF_BELOW:
        return AffinityState.OFF
    return AffinityState.ON if before is AffinityState.ON else AffinityState.SHADOW_REPLAY
