"""How the objective and the proven bound met: cost over time, and the gap below it.

Inputs: the trace of a result. Output: a figure. Time is wall time where a clock was given, else steps: this picture
alone shows how long the search took, so it differs from run to run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kvplan_cli.output import number
from kvplan_cli.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    keyed,
    new_figure,
    plain_log,
    plain_ticks,
    quiet_axes,
)
from kvplan_solver.instance import Floats
from kvplan_solver.result import Result, TracePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SETTLED = "settled"
"""Step of the planner that prices the found plan at the batch it implies."""
WIDE_SPREAD = 5.0
"""Ratio of the first cost to the last from which a linear axis would hide the end of the search."""


@dataclass(frozen=True, eq=False)
class Course:
    """Cost and bound after every step, the best so far; times in seconds or steps."""

    times: Floats
    objective: Floats
    bound: Floats
    in_seconds: bool


def course(trace: Sequence[TracePoint]) -> Course:
    """The best cost and the best bound after each step of a trace of at least one point."""
    in_seconds = all(point.seconds is not None for point in trace)
    times = [point.seconds or 0.0 for point in trace] if in_seconds else range(len(trace))
    return Course(
        np.asarray(times, dtype=np.float64),
        np.minimum.accumulate([point.objective for point in trace]),
        np.maximum.accumulate([point.lower_bound for point in trace]),
        in_seconds,
    )


def searched(result: Result) -> tuple[TracePoint, ...]:
    """The points of the search itself; the last one may be priced at other speeds and is told apart by name."""
    final = TracePoint("final", result.objective, result.lower_bound)
    return tuple(point for point in result.trace if point.step != SETTLED) or (final,)


def convergence_figure(result: Result, fleet: str) -> "Figure":
    """Objective and bound over time, with the gap underneath where the method proves a bound."""
    found = course(searched(result))
    bounded = bool(np.isfinite(found.bound[-1]))
    figure = new_figure(8.5, 5.6 if bounded else 4.0)
    rows, heights = (2, (2.2, 1)) if bounded else (1, (1,))
    grid = figure.subplots(rows, 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    _draw_costs(grid[0], found, bounded)
    if bounded:
        _draw_gap(grid[1], found)
    if any(point.step == SETTLED for point in result.trace):
        _draw_settled(grid[0], found, result)
    keyed(grid[0], "upper right")
    grid[-1].set_xlabel("seconds since the start" if found.in_seconds else "step of the search")
    ending = f"gap {result.gap:.2%}" if np.isfinite(result.lower_bound) else "no lower bound: the method proves none"
    figure.suptitle(f"{fleet}: {result.method.value} method, {result.status.value}, {ending}", fontsize=12)
    return figure


def _draw_costs(axes: "Axes", found: Course, bounded: bool) -> None:
    axes.step(
        found.times, found.objective, where="post", color=VERMILION, linewidth=2, marker="o", markersize=4,
        label=f"best plan found: {number(float(found.objective[-1]))}",
    )  # fmt: skip
    if bounded:
        finite = np.isfinite(found.bound)
        axes.step(
            found.times[finite], found.bound[finite], where="post", color=BLUE, linewidth=2, linestyle="--",
            label=f"no plan can cost less (bound): {number(float(found.bound[-1]))}",
        )  # fmt: skip
    if found.objective[-1] > 0 and found.objective[0] > WIDE_SPREAD * found.objective[-1]:
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    else:
        axes.yaxis.set_major_formatter(plain_ticks())
    axes.set_ylabel("cost per second\n(wasted KV tokens)")
    quiet_axes(axes)


def _draw_settled(axes: "Axes", found: Course, result: Result) -> None:
    """The plan at the speeds of its own batch: not on the course, whose speeds were assumed."""
    axes.plot(
        found.times[-1], result.objective, color=GREEN, marker="D", markersize=8, linestyle="none",
        label=f"at the speeds of its own batch: {number(result.objective)}",
    )  # fmt: skip


def _draw_gap(axes: "Axes", found: Course) -> None:
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.clip(1 - found.bound / found.objective, 0, None) * 100
    shown = np.isfinite(gap)
    axes.step(found.times[shown], gap[shown], where="post", color=ORANGE, linewidth=2)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(bottom=0)
    axes.set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    axes.set_ylabel("proven gap, %")
    quiet_axes(axes)
