"""The radius ε suggested by data: sampling noise of the samples plus their recent drift.

Inputs: output lengths of one class in tokens, cut into windows in time order, and a seed. Output: ε in
tokens with its two parts. This module draws from a generator seeded by the caller and from nothing else.

The Wasserstein-1 distance is that of (12) of the BCD-DRO paper. Design rule (02-solver §2): "``radius.auto``
estimates ε from bootstrap noise plus recent W1 drift". Both parts are declared here:

- noise: P90 over bootstrap resamples of W1(resample, sample), at the size of the pooled sample. It falls
  like 1/√N and says how far the true distribution may be from the samples even when nothing moves.
- drift: of the last three pairs of consecutive windows, the largest part of their distance beyond the P90
  that two draws of those sizes from one distribution show. Without that correction the noise of small
  windows would be counted as drift, and a stationary class would never reach a small radius.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.errors import Finding, InvalidInput
from kvplan_solver.instance import Floats

Counts = NDArray[np.int64]

NOISE_LEVEL = 0.9
"""Distances up to this quantile of their resampling distribution count as noise."""
RESAMPLES = 200
"""Bootstrap draws per estimate: the P90 is then good to a few percent."""
RECENT_PAIRS = 3
"""Consecutive window pairs that count as recent."""


@dataclass(frozen=True)
class RadiusEstimate:
    """A suggested ε and where it comes from.

    Attributes:
        noise_tokens: P90 of the bootstrap distance at the pooled sample's size.
        drift_tokens: recent movement beyond noise; 0 when there are fewer than two windows.
        window_distances: raw W1 between consecutive windows, tokens, in time order.
        mean_tokens: mean of the pooled sample.
    """

    noise_tokens: float
    drift_tokens: float
    window_distances: tuple[float, ...]
    mean_tokens: float

    @property
    def tokens(self) -> float:
        """ε = noise + drift, tokens."""
        return self.noise_tokens + self.drift_tokens

    @property
    def relative(self) -> float:
        """ε over the mean length; 0 when every length is 0. The unit ``Scale`` and ``relativeMilli`` use."""
        return self.tokens / self.mean_tokens if self.mean_tokens > 0 else 0.0


def wasserstein_1(first: Floats, second: Floats) -> float:
    """W1 between two samples of equal weights: the area between their distribution functions.

    Args:
        first: tokens, shape (n,), any order.
        second: tokens, shape (m,), any order.

    Returns:
        Tokens.

    Raises:
        InvalidInput: an empty sample, or one with NaN or infinite values.
    """
    a, b = _checked("first", first), _checked("second", second)
    places = np.sort(np.concatenate((a, b)))
    share_a = np.searchsorted(a, places[:-1], side="right") / len(a)
    share_b = np.searchsorted(b, places[:-1], side="right") / len(b)
    return float(np.abs(share_a - share_b) @ np.diff(places))


def bootstrap_noise(samples: Floats, seed: int) -> float:
    """P90 of W1 between a bootstrap resample and the sample, at the sample's size.

    Args:
        samples: tokens, shape (n,).
        seed: of the resampling.

    Returns:
        Tokens; 0 for a single sample, about which resampling can say nothing.

    Raises:
        InvalidInput: an empty sample, or one with NaN or infinite values.
    """
    values, counts = np.unique(_checked("samples", samples), return_counts=True)
    rng, own, gaps = np.random.default_rng(seed), _shares(counts), np.diff(values)
    distances = [float(np.abs(_resampled(counts, counts.sum(), rng) - own) @ gaps) for _ in range(RESAMPLES)]
    return float(np.quantile(distances, NOISE_LEVEL))


def suggested_radius(windows: Sequence[Floats], seed: int) -> RadiusEstimate:
    """ε of one class from its recent windows of output lengths.

    Args:
        windows: tokens, at least one non-empty array, oldest first; empty windows (no traffic) are skipped.
        seed: of the resampling; the same windows and seed give the same ε.

    Returns:
        The estimate with both parts, tokens.

    Raises:
        InvalidInput: no samples at all, or NaN or infinite ones.
    """
    filled = [_checked(f"window {n}", w) for n, w in enumerate(windows) if len(w)]
    if not filled:
        raise InvalidInput("radius", "windows", len(windows), "give at least one window with samples")
    pooled = np.concatenate(filled)
    pairs = list(pairwise(filled))
    distances = tuple(wasserstein_1(a, b) for a, b in pairs)
    recent = list(zip(pairs, distances, strict=True))[-RECENT_PAIRS:]
    excess = [distance - _distance_without_drift(a, b, seed) for (a, b), distance in recent]
    return RadiusEstimate(
        noise_tokens=bootstrap_noise(pooled, seed),
        drift_tokens=max([0.0, *excess]),
        window_distances=distances,
        mean_tokens=float(pooled.mean()),
    )


def _distance_without_drift(first: Floats, second: Floats, seed: int) -> float:
    """P90 of W1 between two draws of these sizes from the pooled distribution, tokens."""
    values, counts = np.unique(np.concatenate((first, second)), return_counts=True)
    rng, gaps = np.random.default_rng(seed), np.diff(values)
    distances = [
        float(np.abs(_resampled(counts, len(first), rng) - _resampled(counts, len(second), rng)) @ gaps)
        for _ in range(RESAMPLES)
    ]
    return float(np.quantile(distances, NOISE_LEVEL))


def _resampled(counts: Counts, size: int, rng: np.random.Generator) -> Floats:
    """Distribution function of one resample of ``size`` at all but the last value.

    Lengths are integers with far fewer values than samples, so counts are drawn instead of samples.
    """
    return _shares(rng.multinomial(size, counts / counts.sum()))


def _shares(counts: Counts) -> Floats:
    return np.asarray(np.cumsum(counts)[:-1] / counts.sum())


def _checked(name: str, samples: Floats) -> Floats:
    values = np.sort(np.asarray(samples, dtype=np.float64))
    if values.ndim != 1 or not values.size:
        raise InvalidInput("radius", name, f"array of shape {values.shape}", "give at least one sample")
    if not np.isfinite(values).all():
        raise InvalidInput("radius", name, Finding("is NaN or infinite"), "remove those samples first")
    return values
