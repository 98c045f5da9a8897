"""Reservation against output lengths: where the fractile cuts the distribution, and what moves the cut.

Left, per class: the empirical distribution of output lengths, the critical fractile and the reservation
that the plan holds beyond the P95 prompt. Right: the robust reservation as a function of ε with the shift
threshold R; for Wasserstein1 it is a step function (02-solver §2), and the figure shows it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvplan_cli.epsilon import orders_over_radius
from kvplan_cli.output import number
from kvplan_cli.plots.style import (
    BLUE,
    GREEN,
    MUTED,
    ORANGE,
    VERMILION,
    keyed,
    new_figure,
    plain_log,
    plain_ticks,
    quiet_axes,
    titled,
)
from kvplan_solver.instance import Ambiguity, ClassInput
from kvplan_solver.newsvendor import robust_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES_PER_FIGURE = 4
_ROOM_FOR_KEY = 1.6


def reservation_figures(
    classes: Sequence[ClassInput], reservation_tokens: Sequence[int], ambiguity: Ambiguity
) -> list["Figure"]:
    """Figures of up to four classes each."""
    pairs = list(zip(classes, reservation_tokens, strict=True))
    return [
        _figure(pairs[start : start + CLASSES_PER_FIGURE], ambiguity)
        for start in range(0, len(pairs), CLASSES_PER_FIGURE)
    ]


def _figure(pairs: Sequence[tuple[ClassInput, int]], ambiguity: Ambiguity) -> "Figure":
    figure = new_figure(11.5, 3.1 * len(pairs) + 0.5)
    grid = figure.subplots(len(pairs), 2, squeeze=False, width_ratios=(1.35, 1))
    for (left, right), (c, tokens) in zip(grid, pairs, strict=True):
        _draw_distribution(left, c, tokens)
        _draw_radius(right, c, ambiguity)
    figure.suptitle(f"Reservation and output lengths per class (ambiguity {ambiguity.value})", fontsize=12)
    return figure


def _draw_distribution(axes: "Axes", c: ClassInput, reservation_tokens: int) -> None:
    samples, held = c.output_lengths, reservation_tokens - c.input_tokens_p95
    heights = np.arange(1, samples.size + 1) / samples.size
    axes.step(samples, heights, where="post", color=BLUE, linewidth=1.8, label="output lengths (CDF)")
    axes.axhline(c.fractile, color=ORANGE, linestyle="--", label=f"fractile q = {c.fractile:.3f}")
    axes.axvline(
        max(held, 1), color=VERMILION, linewidth=1.8,
        label=f"reserved: {held:,} output tokens\n(r = {reservation_tokens:,}, P95 prompt {c.input_tokens_p95:,})",
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(max(1.0, float(samples[0])), float(c.max_output_tokens))
    plain_log(axes.xaxis)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of requests")
    axes.set_xlabel("output tokens (log scale)")
    titled(axes, f"{c.name}: {float((samples <= held).mean()):.1%} of outputs fit their reservation")
    keyed(axes, "lower right")
    quiet_axes(axes)


def _draw_radius(axes: "Axes", c: ClassInput, ambiguity: Ambiguity) -> None:
    found = orders_over_radius(c, ambiguity)
    unit = "fraction of the lengths" if ambiguity is Ambiguity.SCALE else "tokens"
    axes.plot(found.radii, found.output_tokens, color=BLUE, linewidth=1.8, label="robust reservation η*")
    axes.axvline(c.radius, color=GREEN, linewidth=1.6, label=f"ε in force = {number(c.radius, 3)}")
    threshold = robust_order(c, ambiguity).shift_threshold_tokens
    if np.isfinite(threshold):
        label = f"shift threshold R = {number(threshold, 3)}"
        axes.axvline(threshold, color=MUTED, linestyle=":", linewidth=1.8, label=label)
    axes.set_xlim(0, float(found.radii[-1]))
    axes.set_ylim(0, max(1.0, float(found.output_tokens.max()) * _ROOM_FOR_KEY))
    axes.set_xlabel(f"radius ε ({unit})")
    axes.set_ylabel("output tokens reserved")
    axes.yaxis.set_major_formatter(plain_ticks())
    titled(axes, _radius_title(c.radius, threshold))
    keyed(axes, "upper left")
    quiet_axes(axes)


def _radius_title(radius: float, threshold: float) -> str:
    if not np.isfinite(threshold):
        return "the order grows with ε"
    return "ε below R: the order is the sample's" if radius <= threshold else "ε above R: the order has jumped"
