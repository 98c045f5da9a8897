"""Which group sits on which GPUs of which node.

Inputs: nodes with their free GPUs, configurations, placements. Output: a figure. A stage is drawn as one box
as wide as its GPUs; stages of one group that lie on several boxes share the group's number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvplan_cli.plots.style import EMPTY, INK, MUTED, colours, ink_on, new_figure
from kvplan_solver.instance import GroupPlacement, Instance, NodeInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NODES_PER_COLUMN = 16
_HEIGHT, _WIDTH = 0.42, 5.6


@dataclass(frozen=True)
class Box:
    """One stage on one node: the group's label and which GPUs it takes."""

    node: str
    configuration: str
    label: str
    first_gpu: int
    gpus: int


def boxes(instance: Instance, placements: Sequence[GroupPlacement]) -> list[Box]:
    """Every stage with the GPUs it takes, filled from the left in the order of the placements."""
    width = {k.name: k.tensor_parallel for k in instance.configurations}
    next_gpu = {node.name: 0 for node in instance.nodes}
    next_slot: dict[str, int] = {}
    found = []
    for placement in placements:
        name = placement.configuration
        slot = next_slot[name] = next_slot.get(name, -1) + 1
        for stage, node in enumerate(placement.stages):
            stages = f"/{stage + 1}" if len(placement.stages) > 1 else ""
            found.append(Box(node, name, f"{name}-{slot}{stages}", next_gpu.get(node, 0), width[name]))
            next_gpu[node] = next_gpu.get(node, 0) + width[name]
    return found


def partition_figure(instance: Instance, placements: Sequence[GroupPlacement], fleet: str) -> "Figure":
    """The partition, one row per node, in columns of sixteen nodes."""
    columns = [
        instance.nodes[start : start + NODES_PER_COLUMN] for start in range(0, len(instance.nodes), NODES_PER_COLUMN)
    ] or [()]
    rows = max(map(len, columns))
    figure = new_figure(_WIDTH * min(len(columns), 4) + 1.4, _HEIGHT * rows + 1.7)
    found = boxes(instance, placements)
    palette = colours([k.name for k in instance.configurations])
    grid = figure.subplots(1, len(columns), squeeze=False)[0]
    for axes, nodes in zip(grid, columns, strict=True):
        _draw_column(axes, nodes, found, palette)
    used = sum(box.gpus for box in found)
    free = sum(node.free_gpus for node in instance.nodes)
    figure.suptitle(f"{fleet}: {len(placements)} groups on {used} of {free} GPUs", fontsize=12, color=INK)
    _legend(figure, instance, placements, palette)
    return figure


def _draw_column(axes: "Axes", nodes: Sequence[NodeInput], found: Sequence[Box], palette: dict[str, str]) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415  optional extra

    rows = {node.name: row for row, node in enumerate(nodes)}
    for node in nodes:
        for gpu in range(node.free_gpus):
            place = (gpu + 0.04, rows[node.name] - 0.38)
            axes.add_patch(Rectangle(place, 0.92, 0.76, facecolor=EMPTY, edgecolor="#CCCCCC", linewidth=0.6))
    for box in found:
        if box.node in rows:
            _draw_box(axes, box, rows[box.node], palette[box.configuration])
    widest = max((node.free_gpus for node in nodes), default=1)
    axes.set_xlim(-0.1, widest + 0.1)
    axes.set_ylim(len(nodes) - 0.4, -0.6)
    axes.set_yticks(range(len(nodes)), [node.name for node in nodes])
    axes.set_xticks([gpu + 0.5 for gpu in range(widest)], [str(gpu + 1) for gpu in range(widest)])
    axes.set_xlabel("GPUs this fleet may use on the node")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_box(axes: "Axes", box: Box, row: int, colour: str) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415  optional extra

    place = (box.first_gpu + 0.04, row - 0.38)
    axes.add_patch(Rectangle(place, box.gpus - 0.08, 0.76, facecolor=colour, edgecolor=INK, linewidth=0.9))
    size = 9 if len(box.label) <= 6 * box.gpus else max(5.0, 9 * 6 * box.gpus / len(box.label))
    axes.text(
        box.first_gpu + box.gpus / 2, row, box.label,
        ha="center", va="center", fontsize=size, color=ink_on(colour),
    )  # fmt: skip


def _legend(
    figure: "Figure", instance: Instance, placements: Sequence[GroupPlacement], palette: dict[str, str]
) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415  optional extra

    counts = {k.name: sum(p.configuration == k.name for p in placements) for k in instance.configurations}
    handles = [
        Patch(facecolor=palette[k.name], edgecolor=INK, label=f"{k.name}: {counts[k.name]} × {k.gpus} GPU")
        for k in instance.configurations
        if counts[k.name]
    ]
    taken = sum(counts[k.name] * k.gpus for k in instance.configurations)
    idle = sum(node.free_gpus for node in instance.nodes) - taken
    if idle:
        handles.append(Patch(facecolor=EMPTY, edgecolor=MUTED, label=f"idle: {idle} GPU"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(5, len(handles)), frameon=False)
