"""How fast a group is at a given batch: the three coefficients of (1) as monotone functions of the batch.

Purpose: hold T = prefill·Lin + decode·E[ξ] + overhead for every batch between 1 and max_sequences, so that a
plan and the batch it implies can be made to agree (``fixed_point``).
Inputs: a grid of batches with the coefficients measured, estimated or computed at each.
Output: the coefficients at any batch, linear between grid points and constant beyond the ends.
Must not: extrapolate, or let a larger batch look faster for one sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ConfigurationInput, Floats


@dataclass(frozen=True)
class Speeds:
    """The coefficients of (1) at one batch.

    Attributes:
        prefill_seconds_per_token: α·p/C, seconds per prompt token.
        decode_seconds_per_token: β/B, seconds per output token.
        overhead_seconds: seconds per request.
    """

    prefill_seconds_per_token: float
    decode_seconds_per_token: float
    overhead_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class SpeedCurve:
    """Coefficients of (1) over the batch; noise that makes one fall is averaged out (isotonic regression).

    Attributes:
        batch: sequences running together in a group, ascending, first at least 1, length B.
        prefill_seconds_per_token: length B.
        decode_seconds_per_token: length B.
        overhead_seconds: seconds per request, length B; zeros when left out.
    """

    batch: Floats
    prefill_seconds_per_token: Floats
    decode_seconds_per_token: Floats
    overhead_seconds: Floats

    def __post_init__(self) -> None:
        _check_batch(self.batch)
        for name in ("prefill_seconds_per_token", "decode_seconds_per_token", "overhead_seconds"):
            object.__setattr__(self, name, _monotone(name, getattr(self, name), self.batch.size))

    @classmethod
    def of(
        cls,
        batch: Sequence[float] | Floats,
        prefill_seconds_per_token: Sequence[float] | Floats,
        decode_seconds_per_token: Sequence[float] | Floats,
        overhead_seconds: Sequence[float] | Floats | None = None,
    ) -> "SpeedCurve":
        """Build a curve from any sequences of numbers; units as in the class.

        Raises:
            InvalidInput: lengths differ, the batch does not ascend from 1 or more, a value is not finite or
                negative.
        """
        grid = np.asarray(batch, dtype=np.float64)
        overhead = np.zeros(grid.shape) if overhead_seconds is None else np.asarray(overhead_seconds)
        return cls(grid, np.asarray(prefill_seconds_per_token), np.asarray(decode_seconds_per_token), overhead)

    def at(self, batch: float) -> Speeds:
        """The coefficients at a batch, clamped to the ends of the grid."""
        columns = (self.prefill_seconds_per_token, self.decode_seconds_per_token, self.overhead_seconds)
        return Speeds(*(float(np.interp(batch, self.batch, column)) for column in columns))


def constant_curve(speeds: Speeds) -> SpeedCurve:
    """A curve that does not depend on the batch (a measurement at the fleet's own batch is one)."""
    return SpeedCurve.of(
        [1.0],
        [speeds.prefill_seconds_per_token],
        [speeds.decode_seconds_per_token],
        [speeds.overhead_seconds],
    )


def at_batch(configuration: ConfigurationInput, curve: SpeedCurve, batch: float) -> ConfigurationInput:
    """The configuration with the curve's coefficients at a batch; everything else is kept."""
    speeds = curve.at(batch)
    return replace(
        configuration,
        prefill_seconds_per_token=speeds.prefill_seconds_per_token,
        decode_seconds_per_token=speeds.decode_seconds_per_token,
        overhead_seconds=speeds.overhead_seconds,
    )


def _check_batch(batch: Floats) -> None:
    good = batch.ndim == 1 and batch.size >= 1 and bool(np.all(np.isfinite(batch)))
    if not (good and batch[0] >= 1 and bool(np.all(np.diff(batch) > 0))):
        raise InvalidInput("speed curve", "batch", batch.tolist(), "give ascending batches, the first at least 1")


def _monotone(name: str, values: Floats, size: int) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (size,):
        raise InvalidInput("speed curve", name, f"shape {column.shape}", f"give one value per batch ({size})")
    if not bool(np.all(np.isfinite(column) & (column >= 0))):
        raise InvalidInput("speed curve", name, column.tolist(), "use finite numbers of 0 or more")
    rising = _isotonic(column)
    rising.setflags(write=False)
    return rising


def _isotonic(column: Floats) -> Floats:
    """Nearest non-decreasing column in least squares: pool adjacent violators."""
    means: list[float] = []
    counts: list[int] = []
    for value in column.tolist():
        mean, count = value, 1
        while means and means[-1] > mean:
            before = counts.pop()
            mean = (means.pop() * before + mean * count) / (before + count)
            count += before
        means.append(mean)
        counts.append(count)
    return np.repeat(means, counts)
