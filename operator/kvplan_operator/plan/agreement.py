"""A decision and the batch it implies, made to agree (02-solver §1) even where the damped fixed point does not.

Inputs: an instance, speed curves, a ``solve`` callable. Output: a decision with shares in thousandths, the
instance frozen at its batch, a report. Pure.

The damped fixed point comes first; where it agrees there is nothing more to do. It may not: at speeds frozen
for a small batch a few groups look as if they could carry everything, at those of a full batch none can. Then
a ladder of batches is climbed down. On each rung a group may run no more sequences than the batch its speeds
are read at, so the rung's plan can only be faster than it was priced. Each rung's decision is priced at the
batch that it settles at, and groups that save nothing there are dropped; the cheapest that the certificate lets
pass wins, equal ones by fewest GPUs. One more solve at that batch gives the bound. The bound is one for plans
at those speeds, like every bound of the fixed point.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kvplan_operator.plan.binding import binding_constraints
from kvplan_operator.plan.pricing import price
from kvplan_operator.plan.shares import round_result
from kvplan_solver.certificate import certify
from kvplan_solver.fixed_point import BatchPoint, FixedPointOptions, FixedPointReport, freeze, solve_with_batch
from kvplan_solver.instance import Instance
from kvplan_solver.packing import place
from kvplan_solver.result import Result, RunnerUp, Status, TracePoint
from kvplan_solver.speed_curve import SpeedCurve

Curves = Mapping[str, SpeedCurve]
Solve = Callable[[Instance], Result]

RUNGS = (1.0, 0.5, 0.25, 0.125)
"""Batches tried, as fractions of the sequences a group runs at most."""
DAMPED = FixedPointOptions(max_passes=3)
"""What does not agree after three passes swings, and the ladder does better than two passes more."""
MAX_SOLVES = DAMPED.max_passes + len(RUNGS) + 1
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Agreed:
    """A rounded decision, the frozen instance it is priced on, and how well batch and plan agree."""

    result: Result
    instance: Instance
    report: FixedPointReport


def agree(instance: Instance, curves: Curves, solve: Solve, gap_target: float) -> Agreed:
    """Solve until the speeds belong to the batch of the plan.

    Returns:
        What agrees; a result without any plan (Infeasible, Error) comes back as the solver gave it.
    """
    exact, frozen, report = solve_with_batch(instance, curves, solve, DAMPED)
    if exact.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return Agreed(exact, frozen, report)
    damped = Agreed(round_result(frozen, exact, gap_target), frozen, report)
    if report.converged:
        return damped
    rungs = [_rung(instance, curves, solve, fraction) for fraction in RUNGS]
    settled = [_settle(instance, curves, result) for result in rungs]
    passing = [_trimmed(instance, curves, rung) for rung in settled if _passes(rung)]
    if not passing:
        return damped
    ranked = sorted(passing, key=_rank)
    best = _evenly_loaded(instance, curves, ranked[0])
    return _bounded(best, ranked, solve, gap_target, report.passes + len(RUNGS) + 1)


def _rung(instance: Instance, curves: Curves, solve: Solve, fraction: float) -> Result:
    """The plan at a batch that no group can exceed, shares in thousandths."""
    limits = [max(1, int(k.max_sequences * fraction)) for k in instance.configurations]
    frozen = freeze(instance, curves, np.array(limits, dtype=np.float64))
    capped = replace(
        frozen,
        configurations=tuple(
            replace(k, max_sequences=limit) if k.name in curves else k
            for k, limit in zip(frozen.configurations, limits, strict=True)
        ),
    )
    return round_result(capped, solve(capped), 0.0)


def _settle(instance: Instance, curves: Curves, decided: Result) -> Agreed:
    """The same decision at the batch it settles at."""
    return Agreed(*solve_with_batch(instance, curves, lambda frozen: priced(frozen, decided)))


def priced(instance: Instance, decided: Result) -> Result:
    """A decision with its costs on another instance of the same shape; it has no bound there."""
    costs, excess = price(instance, decided.groups, decided.reservation_tokens, decided.routing)
    return replace(decided, status=Status.FEASIBLE, costs=costs, slo_excess_seconds=excess, lower_bound=float("-inf"))


def _passes(rung: Agreed) -> bool:
    return rung.report.converged and certify(rung.instance, rung.result).holds


def _trimmed(instance: Instance, curves: Curves, settled: Agreed) -> Agreed:
    """The decision without the groups that save nothing at its own batch; routing stays as it is."""
    for column in range(len(instance.configurations)):
        fewer = settled.result.groups[column]
        while fewer:
            smaller = _without(instance, curves, settled, column, fewer)
            if smaller is not None and _passes(smaller) and _no_dearer(smaller.result, settled.result):
                settled = smaller
            else:
                fewer //= 2
    return settled


def _without(instance: Instance, curves: Curves, settled: Agreed, column: int, fewer: int) -> Agreed | None:
    """So many groups of a configuration less; None where that leaves its traffic without any."""
    result = settled.result
    carries = bool(result.routing[:, column].any())
    if result.groups[column] - fewer < int(carries):
        return None
    groups = tuple(z - fewer * (k == column) for k, z in enumerate(result.groups))
    placements = place(instance, groups)
    if placements is None:
        return None
    return _settle(instance, curves, replace(result, groups=groups, placements=placements))


def _no_dearer(smaller: Result, larger: Result) -> bool:
    return smaller.objective <= larger.objective + _SAME * max(1.0, abs(larger.objective))


def _rank(rung: Agreed) -> tuple[float, int, int, tuple[int, ...]]:
    """Cost to ten digits, then GPUs, then change from what runs."""
    cost, groups, instance = rung.result.objective, rung.result.groups, rung.instance
    digits = cost if cost <= 0 else float(f"{cost:.9e}")
    gpus = sum(z * k.gpus for z, k in zip(groups, instance.configurations, strict=True))
    changed = sum(abs(z - now) for z, now in zip(groups, instance.running_counts, strict=True))
    return digits, gpus, changed, groups


def _evenly_loaded(instance: Instance, curves: Curves, settled: Agreed) -> Agreed:
    """The same, with configurations without groups at the batch they would have if loaded like the busiest.

    Their assumed batch is nobody's measurement. Left small it would make them look faster than the groups that
    carry the load, and the bound would be that of a fleet which does not exist.
    """
    frozen = {point.configuration: point.frozen for point in settled.report.points}
    columns = list(zip(instance.configurations, settled.result.groups, strict=True))
    level = max((frozen[k.name] / k.max_sequences for k, z in columns if z and k.name in frozen), default=1.0)
    batch = [frozen[k.name] if z and k.name in frozen else max(1.0, level * k.max_sequences) for k, z in columns]
    points = tuple(
        BatchPoint(k.name, at, at, assumed=True) if not z else point
        for (k, z), at in zip(columns, batch, strict=True)
        for point in settled.report.points
        if point.configuration == k.name
    )
    even = freeze(instance, curves, np.array(batch))
    return Agreed(settled.result, even, replace(settled.report, points=points))


def _bounded(best: Agreed, ranked: list[Agreed], solve: Solve, gap_target: float, solves: int) -> Agreed:
    """The best decision with a bound at its speeds and what else is known there."""
    there = solve(best.instance)
    bound = float(min(there.lower_bound, best.result.objective))
    same = there.groups == best.result.groups
    known = replace(
        best.result,
        lower_bound=bound,
        binding=binding_constraints(best.instance, best.result),
        runner_up=_runner_up(ranked),
        shift_threshold_tokens=there.shift_threshold_tokens,
        gpu_price=there.gpu_price,
        memory_prices=there.memory_prices if same else (),
        deadline_hit=best.result.deadline_hit or there.deadline_hit,
        trace=(*best.result.trace, TracePoint("settled", best.result.objective, bound)),
    )
    status = Status.OPTIMAL if known.gap <= gap_target else Status.FEASIBLE
    return Agreed(replace(known, status=status), best.instance, replace(best.report, passes=solves))


def _runner_up(ranked: list[Agreed]) -> RunnerUp | None:
    """The best rung with another partition, priced at its own batch."""
    others = [rung.result for rung in ranked if rung.result.groups != ranked[0].result.groups]
    return RunnerUp(others[0].groups, others[0].objective) if others else None
