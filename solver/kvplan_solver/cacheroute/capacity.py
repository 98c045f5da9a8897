"""Budgets shared with the reservations: warm slots W per destination, and q_cap from the measured knee.

In: KV capacity, what the reservations hold, how long the reusable prefixes are, a p99-against-rate curve.
Out: W (0 means affinity off, with that reason) and q_cap with the knee it came from. Source: 03-cacheroute §1
(joint with BCD-DRO) and §3. An error of ±25 % in q_cap is harmless; larger ones are not, so both numbers are
reported. Must not guess where a measurement is missing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kvplan_solver.cacheroute.inputs import Floats, require, require_number

KV_SHARE_MAX = 0.7
"""Largest part of a group's KV memory that warm prefixes may claim, whatever the reservations leave."""


def warm_slots(kv_capacity_tokens: int, reserved_tokens: float, reusable_tokens: float) -> int:
    """W = floor(min(0.7·M_k, M_k − reserved)/reusable tokens of one prefix), never negative.

    Args:
        kv_capacity_tokens: M_k, KV tokens of one group.
        reserved_tokens: left side of (6e) on that group, KV tokens.
        reusable_tokens: mean reusable prefix, weighted by rate, tokens, above 0.

    Raises:
        InvalidInput: a number that is not finite and ≥ 0, or no reusable token.
    """
    require_number("warm slots", "kv_capacity_tokens", kv_capacity_tokens)
    require_number("warm slots", "reserved_tokens", reserved_tokens)
    require_number("warm slots", "reusable_tokens", reusable_tokens, above=0.0)
    left = max(0.0, kv_capacity_tokens - reserved_tokens)
    return int(min(KV_SHARE_MAX * kv_capacity_tokens, left) // reusable_tokens)


def rate_weighted_tokens(tokens: Floats, rates: Floats) -> float:
    """Mean reusable prefix length as requests meet it, tokens; 0 where nothing arrives."""
    total = float(rates.sum())
    return float(tokens @ rates) / total if total > 0 else 0.0


@dataclass(frozen=True)
class KeyCapacity:
    """q_cap and where it comes from, requests per second of one destination.

    Attributes:
        knee: rate at which p99 leaves its flat part, caches warm.
        cold_share: part of a destination's load that is the cold tail.
        q_cap: knee·(1 − cold_share), the declared refinement of the paper's rule.
    """

    knee: float
    cold_share: float

    def __post_init__(self) -> None:
        require_number("key capacity", "knee", self.knee, above=0.0)
        good = 0 <= self.cold_share < 1
        require(good, "key capacity", "cold_share", self.cold_share, "use a fraction of at least 0, below 1")

    @property
    def q_cap(self) -> float:
        """What one key may put on one destination."""
        return self.knee * (1.0 - self.cold_share)


def knee(rates: ArrayLike, p99_seconds: ArrayLike) -> float | None:
    """The rate where p99 bends upwards: the measured point farthest below the chord of the curve.

    Args:
        rates: requests per second of one destination with warm caches, ascending, at least 3.
        p99_seconds: p99 latency at those rates.

    Returns:
        Requests per second; None if there are fewer than three points or the curve never bends upwards.

    Raises:
        InvalidInput: lengths differ, or rates do not ascend.
    """
    x, y = np.asarray(rates, dtype=np.float64), np.asarray(p99_seconds, dtype=np.float64)
    require(x.shape == y.shape, "knee", "p99_seconds", y.shape, f"give one value for each of {x.size} rates")
    require(bool(np.all(np.diff(x) > 0)), "knee", "rates", x.tolist(), "sort the points by rate, each rate once")
    if x.size < 3 or y[-1] <= y[0]:
        return None
    below = (x - x[0]) / (x[-1] - x[0]) - (y - y[0]) / (y[-1] - y[0])
    return float(x[np.argmax(below)]) if below.max() > 0 else None
