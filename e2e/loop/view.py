"""What the demonstration shows while it runs: one screen, drawn anew every second.

Inputs: a ``Scene``, a value. Outputs: a rich renderable. Pure: reading the cluster is `scene.py`'s.
"""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from e2e.loop.scene import Scene

_GOOD, _BAD = "green", "red"
_SHOWN = ("Ready", "MetricsFresh", "PlanFeasible", "PlanAccepted", "RolloutComplete", "TableFresh", "AffinityEnabled")
"""Conditions that are True when all is well."""


def view(scene: Scene, caption: str) -> RenderableType:
    """The screen.

    Args:
        scene: what is.
        caption: what the demonstration does now.
    """
    parts = Group(_groups(scene), _classes(scene), _figures(scene), _conditions(scene))
    return Panel(parts, title=f"kvplan: {caption}", subtitle="Ctrl-C ends everything", border_style="blue")


def _groups(scene: Scene) -> Table:
    title = f"plan {scene.plan or 'none yet'} · table generation {scene.generation} · {scene.keys} keys have a home"
    table = Table(title=title, title_justify="left", expand=True)
    for column in ("node", "groups: slot, tokens reserved of its budget, state"):
        table.add_column(column)
    for node, slots in scene.nodes.items():
        words = [f"{s.name} {s.reserved:,}/{s.budget:,} {s.state}" for s in slots]
        table.add_row(node, "   ".join(words) or Text("no group", style="dim"))
    return table


def _classes(scene: Scene) -> Table:
    table = Table(title="classes, as routers count and clients see them", title_justify="left", expand=True)
    for column in ("class", "req/s", "reserves", "goes to", "whole", "shed", "failed", "cut short"):
        table.add_column(column, justify="left" if column in ("class", "goes to") else "right")
    for c in scene.classes:
        routes = ", ".join(f"{name} {share / 10:.0f} %" for name, share in c.routes)
        ends = (c.whole, c.shed, c.failed, c.truncated)
        table.add_row(c.name, f"{c.rate:.1f}", f"{c.reservation:,}", routes or "-", *(f"{n:,}" for n in ends))
    return table


def _figures(scene: Scene) -> Text:
    words = (
        f"prefix hits {scene.hit_rate:.0%}",
        f"preemptions {scene.preemptions:.0f}",
        f"load, busiest over mean {scene.load_ratio:.2f}",
        f"requests open {scene.open}",
    )
    return Text("  ·  ".join(words), style="bold")


def _conditions(scene: Scene) -> Text:
    return Text("\n").join(_lines(scene))


def _lines(scene: Scene) -> Iterable[Text]:
    known = {condition.type: condition for condition in scene.conditions}
    for type_ in _SHOWN:
        if type_ in known:
            found = known[type_]
            line = f"{type_}={found.status} {found.reason}: {found.message}"
            yield Text(line, style=_GOOD if found.status == "True" else _BAD, no_wrap=True, overflow="ellipsis")
