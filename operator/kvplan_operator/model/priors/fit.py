"""The paper's linear service-time model fitted to estimated latencies.

Purpose: find prefill, decode and overhead of T = prefill·Lin + decode·ξ + overhead (equation (1) with the
batch held fixed) and say how wrong the line is.
Inputs: a ``Profile`` (latencies over batches and lengths). Output: coefficients and relative errors.
Method: least squares of the *relative* error with all three coefficients at least 0, exact by trying every
subset of active coefficients. Must not: hide a poor fit; every fit carries its worst point.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kvplan_operator.model.priors.profile import Profile
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats
from kvplan_solver.speed_curve import SpeedCurve, Speeds

COEFFICIENTS = 3
MINIMUM_POINTS = 4


@dataclass(frozen=True)
class FitError:
    """How far a linear model is from the latencies it stands for.

    Attributes:
        worst: largest |model − estimate|/estimate.
        mean: mean of the same.
        worst_batch: batch of the worst point.
        worst_input_tokens: its prompt length.
        worst_output_tokens: its output length.
    """

    worst: float
    mean: float
    worst_batch: int
    worst_input_tokens: int
    worst_output_tokens: int


@dataclass(frozen=True)
class LinearFit:
    """One linear model for a range of batches."""

    speeds: Speeds
    error: FitError


@dataclass(frozen=True)
class PlanFit:
    """What a linear model is worth at the batch of a plan.

    Attributes:
        batch: the plan's batch of one group.
        at_batch: error of the curve at the grid batches around it.
        wandering: error of the coefficients frozen at it while the real batch lies between half and twice.
    """

    batch: float
    at_batch: FitError
    wandering: FitError


@dataclass(frozen=True, eq=False)
class _Points:
    """The points of a profile that enter a fit, flattened, length Q; times in seconds."""

    batch: Floats
    input_tokens: Floats
    output_tokens: Floats
    seconds: Floats

    @property
    def design(self) -> Floats:
        """Rows (Lin, ξ, 1), shape (Q, 3)."""
        return np.column_stack([self.input_tokens, self.output_tokens, np.ones(self.seconds.size)])


def fit_linear(profile: Profile, batch_low: float, batch_high: float) -> LinearFit:
    """Fit one linear model over the grid batches that cover [batch_low, batch_high].

    Raises:
        InvalidInput: the range is empty.
    """
    points = _points(profile, batch_low, batch_high)
    relative = points.design / points.seconds[:, None]
    coefficients = _nonnegative_least_squares(relative, np.ones(points.seconds.size))
    return LinearFit(Speeds(*map(float, coefficients)), _error(points, points.design @ coefficients))


def fit_curve(profile: Profile) -> SpeedCurve:
    """Fit one linear model per grid batch and join them; the curve keeps the coefficients non-decreasing."""
    fits = [fit_linear(profile, batch, batch).speeds for batch in profile.batch]
    return SpeedCurve.of(
        profile.batch,
        [fit.prefill_seconds_per_token for fit in fits],
        [fit.decode_seconds_per_token for fit in fits],
        [fit.overhead_seconds for fit in fits],
    )


def curve_error(profile: Profile, curve: SpeedCurve, batch_low: float, batch_high: float) -> FitError:
    """Error of a curve read at the batch of each point, over the batches that cover the range."""
    points = _points(profile, batch_low, batch_high)
    coefficients = np.array([_vector(curve.at(batch)) for batch in points.batch])
    return _error(points, np.sum(points.design * coefficients, axis=1))


def frozen_error(profile: Profile, speeds: Speeds, batch_low: float, batch_high: float) -> FitError:
    """Error of coefficients frozen at one batch while the real batch wanders over the range."""
    points = _points(profile, batch_low, batch_high)
    return _error(points, points.design @ _vector(speeds))


def plan_fit(profile: Profile, curve: SpeedCurve, batch: float, max_sequences: float) -> PlanFit:
    """How good the linear model is over the batches that a plan implies; never above max_sequences."""
    low, high = max(1.0, batch / 2), max(1.0, min(2 * batch, max_sequences))
    return PlanFit(
        batch=batch,
        at_batch=curve_error(profile, curve, batch, batch),
        wandering=frozen_error(profile, curve.at(batch), min(low, high), high),
    )


def reachable(profile: Profile) -> NDArray[np.bool_]:
    """Which points a group can be at, shape (P, B).

    A batch must fit into M, and with one prompt prefilled per step a sequence lives ξ steps, so no more than
    ξ run together. Where fewer than four points fit, the four shortest stand in.
    """
    tokens = (profile.input_tokens + profile.output_tokens)[:, None]
    steady = profile.batch[None, :] <= profile.output_tokens[:, None]
    fits = steady & (tokens * profile.batch[None, :] <= profile.kv_capacity_tokens)
    length = np.where(steady, tokens, np.inf)
    shortest = length <= np.sort(length, axis=0)[MINIMUM_POINTS - 1]
    return np.asarray(np.where(fits.sum(axis=0) >= MINIMUM_POINTS, fits, steady & shortest))


def _points(profile: Profile, low: float, high: float) -> _Points:
    """Reachable points at the grid batches from the last one ≤ low to the first one ≥ high."""
    if not low <= high:
        raise InvalidInput("batch range", "batch_low", low, f"use at most batch_high ({high})")
    first = max(0, int(np.searchsorted(profile.batch, low, side="right")) - 1)
    last = min(profile.batch.size - 1, int(np.searchsorted(profile.batch, high, side="left")))
    wanted = reachable(profile)
    wanted[:, :first] = False
    wanted[:, last + 1 :] = False
    rows, columns = np.nonzero(wanted)
    return _Points(
        batch=profile.batch[columns],
        input_tokens=profile.input_tokens[rows],
        output_tokens=profile.output_tokens[rows],
        seconds=profile.service_seconds()[rows, columns],
    )


def _vector(speeds: Speeds) -> Floats:
    return np.array([speeds.prefill_seconds_per_token, speeds.decode_seconds_per_token, speeds.overhead_seconds])


def _nonnegative_least_squares(matrix: Floats, target: Floats) -> Floats:
    """Exact for three unknowns: the optimum is the unconstrained one on some subset of them."""
    best, best_residual = np.zeros(COEFFICIENTS), float(target @ target)
    for count in range(1, COEFFICIENTS + 1):
        for active in combinations(range(COEFFICIENTS), count):
            part = np.linalg.lstsq(matrix[:, active], target, rcond=None)[0]
            residual = float(np.sum((matrix[:, active] @ part - target) ** 2))
            if bool(np.all(part >= 0)) and residual < best_residual:
                best, best_residual = np.zeros(COEFFICIENTS), residual
                best[list(active)] = part
    return best


def _error(points: _Points, model: Floats) -> FitError:
    relative = np.abs(model - points.seconds) / points.seconds
    worst = int(np.argmax(relative))
    return FitError(
        worst=float(relative[worst]),
        mean=float(relative.mean()),
        worst_batch=int(points.batch[worst]),
        worst_input_tokens=int(points.input_tokens[worst]),
        worst_output_tokens=int(points.output_tokens[worst]),
    )
