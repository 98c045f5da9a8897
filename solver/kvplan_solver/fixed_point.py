"""Batch and plan agree: a damped fixed point outside the solve (02-solver §1, second row).

The plan decides how many sequences run together in a group; that batch decides how fast each of them is;
and T_ik decides the plan. Each pass freezes the speeds at a batch, solves, and reads off the batch the plan
implies: n_k = Σ_i λ_i π_ik T_ik/z_k (Little's law), between 1 and S_k.

Inputs: an ``Instance``, a ``SpeedCurve`` per configuration, a ``solve`` callable. Outputs: a result, the
frozen instance that its bound and certificate refer to, and a report.
Must not: solve anything itself, or return a result that belongs to another instance than the one returned.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.batch import implied_batch, settled_batch
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ConfigurationInput, Floats, Instance
from kvplan_solver.result import Bools, Result
from kvplan_solver.speed_curve import SpeedCurve, at_batch

MAX_PASSES = 5
DAMPING = 0.5
TOLERANCE = 0.05
ASSUMED_BATCH = 16.0


@dataclass(frozen=True)
class FixedPointOptions:
    """How the fixed point is sought.

    Attributes:
        max_passes: solves at most.
        damping: share of the way to the plan's own batch that a configuration goes per pass; the first time a
            plan uses it, it goes all the way, for its batch was only assumed until then.
        tolerance: relative difference between frozen and implied batch that counts as agreement.
        assumed_batch: batch before any plan, and of configurations no plan uses; capped at S_k.
    """

    max_passes: int = MAX_PASSES
    damping: float = DAMPING
    tolerance: float = TOLERANCE
    assumed_batch: float = ASSUMED_BATCH

    def __post_init__(self) -> None:
        for name, good, remedy in (
            ("max_passes", self.max_passes >= 1, "use 1 or more"),
            ("damping", 0 < self.damping <= 1, "use a fraction above 0, at most 1"),
            ("tolerance", self.tolerance > 0, "use a number above 0"),
            ("assumed_batch", self.assumed_batch >= 1, "use 1 or more sequences"),
        ):
            if not good:
                raise InvalidInput("fixed point", name, getattr(self, name), remedy)


@dataclass(frozen=True)
class BatchPoint:
    """One configuration at the end.

    Attributes:
        configuration: its name.
        frozen: batch that the returned instance's speeds were read at.
        implied: batch that the plan implies at those speeds; equal to ``frozen`` where the plan has no group.
        assumed: whether no plan of any pass ran a group of it, so that ``frozen`` is only an assumption.
    """

    configuration: str
    frozen: float
    implied: float
    assumed: bool


@dataclass(frozen=True)
class FixedPointReport:
    """How well batch and plan agree.

    Attributes:
        passes: solves done.
        converged: whether ``residual`` is within the tolerance.
        residual: largest |implied − frozen|/frozen over configurations with groups, of the returned pass.
        residuals: the same for every pass, in order.
        points: per configuration that has a curve, in the instance's order.
        options: damping, tolerance and limits in force.
    """

    passes: int
    converged: bool
    residual: float
    residuals: tuple[float, ...]
    points: tuple[BatchPoint, ...]
    options: FixedPointOptions


@dataclass(frozen=True, eq=False)
class _Pass:
    instance: Instance
    result: Result
    frozen: Floats
    implied: Floats
    residual: float


def solve_with_batch(
    instance: Instance,
    curves: Mapping[str, SpeedCurve],
    solve: Callable[[Instance], Result],
    options: FixedPointOptions | None = None,
) -> tuple[Result, Instance, FixedPointReport]:
    """Solve until the speeds belong to the batch of the plan.

    Configurations without a curve keep the speeds they have.

    Returns:
        the pass with the smallest residual (the earliest of equals): its result, its frozen instance, and
        the report.

    Raises:
        InvalidInput: a curve for a configuration that the instance does not have.
    """
    chosen = options or FixedPointOptions()
    _check_names(instance, curves)
    limits = np.array([float(k.max_sequences) for k in instance.configurations])
    batch = np.minimum(limits, chosen.assumed_batch)
    used = np.zeros(limits.shape, dtype=bool)
    passes: list[_Pass] = []
    while len(passes) < chosen.max_passes and not _agreed(passes, chosen):
        step = _one_pass(instance, curves, solve, batch)
        share = np.where(used, chosen.damping, 1.0)
        used |= np.array(step.result.groups) > 0
        batch = batch + share * (_targets(step, curves) - batch)
        passes.append(step)
    best = min(passes, key=lambda step: step.residual)
    return best.result, best.instance, _report(passes, best, curves, used, chosen)


def _one_pass(
    instance: Instance, curves: Mapping[str, SpeedCurve], solve: Callable[[Instance], Result], batch: Floats
) -> _Pass:
    frozen = freeze(instance, curves, batch)
    result = solve(frozen)
    implied = implied_batch(frozen, result)
    known = np.array([k.name in curves for k in instance.configurations])
    implied = np.where(np.isnan(implied) | ~known, batch, implied)
    return _Pass(frozen, result, batch, implied, float(np.max(np.abs(implied - batch) / batch)))


def freeze(instance: Instance, curves: Mapping[str, SpeedCurve], batch: Floats) -> Instance:
    """The instance with every curve read at its batch, length K."""

    def frozen(k: ConfigurationInput, at: float) -> ConfigurationInput:
        return at_batch(k, curves[k.name], at) if k.name in curves else k

    configurations = tuple(map(frozen, instance.configurations, batch.tolist()))
    return replace(instance, configurations=configurations)


def _targets(step: _Pass, curves: Mapping[str, SpeedCurve]) -> Floats:
    """Where each batch should go: the settled one under this pass's routing, nowhere without groups."""
    return np.array(
        [
            settled_batch(step.instance, step.result, column, curves[k.name])
            if step.result.groups[column] > 0 and k.name in curves
            else step.frozen[column]
            for column, k in enumerate(step.instance.configurations)
        ]
    )


def _agreed(passes: list[_Pass], options: FixedPointOptions) -> bool:
    return bool(passes) and passes[-1].residual <= options.tolerance


def _report(
    passes: list[_Pass],
    best: _Pass,
    curves: Mapping[str, SpeedCurve],
    used: Bools,
    options: FixedPointOptions,
) -> FixedPointReport:
    points = [
        BatchPoint(k.name, float(best.frozen[column]), float(best.implied[column]), not bool(used[column]))
        for column, k in enumerate(best.instance.configurations)
        if k.name in curves
    ]
    residuals = tuple(step.residual for step in passes)
    converged = best.residual <= options.tolerance
    return FixedPointReport(len(passes), converged, best.residual, residuals, tuple(points), options)


def _check_names(instance: Instance, curves: Mapping[str, SpeedCurve]) -> None:
    known = {k.name for k in instance.configurations}
    for name in sorted(curves):
        if name not in known:
            raise InvalidInput("speed curve", "configuration", name, f"use one of {', '.join(sorted(known))}")
