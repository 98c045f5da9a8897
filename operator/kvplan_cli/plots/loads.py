"""Load per destination before and after a replan.

Inputs: load per destination, twice, in a unit that makes them comparable. Output: a figure. A destination that
exists only before or only after is drawn with an empty place where it is missing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kvplan_cli.plots.style import BLUE, INK, MUTED, ORANGE, keyed, new_figure, quiet_axes, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Loads = Mapping[str, float]
"""Load by destination (slot)."""
_NAMED_DESTINATIONS = 40


def loads_figure(
    before: Loads, after: Loads, title: str, unit: str, labels: tuple[str, str] = ("before", "after")
) -> "Figure":
    """Paired bars, one pair per destination; the legend tells how even each side is."""
    names = sorted({*before, *after}, key=_slot_order)
    figure = new_figure(max(7.0, min(16.0, 1.6 + 0.42 * len(names))), 4.4)
    axes = figure.subplots()
    places = np.arange(len(names))
    for shift, loads, colour, label, hatch in (
        (-0.2, before, ORANGE, labels[0], "//"),
        (0.2, after, BLUE, labels[1], None),
    ):
        heights = [loads.get(name, 0.0) for name in names]
        axes.bar(places + shift, heights, 0.38, color=colour, edgecolor=INK, linewidth=0.5, hatch=hatch,
                 label=f"{label}: {_described(loads)}")  # fmt: skip
    _name_destinations(axes, names)
    axes.set_ylabel(unit)
    axes.set_ylim(0, 1.35 * max([*before.values(), *after.values(), 1e-9]))
    titled(axes, title)
    keyed(axes, "upper left")
    quiet_axes(axes)
    return figure


def _described(loads: Loads) -> str:
    values = np.array([load for load in loads.values() if load > 0])
    if not values.size:
        return "no load"
    return f"{values.size} destinations, largest/mean {values.max() / values.mean():.3f}"


def _name_destinations(axes: "Axes", names: list[str]) -> None:
    if len(names) <= _NAMED_DESTINATIONS:
        tilted = len(names) > 8
        axes.set_xticks(range(len(names)), names, rotation=45 if tilted else 0, ha="right" if tilted else "center")
        axes.set_xlabel("destination")
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{len(names)} destinations, in order of their names", color=MUTED)


def _slot_order(name: str) -> tuple[str, int]:
    head, _, number = name.rpartition("-")
    return (head, int(number)) if number.isdigit() else (name, -1)
