"""Today's plan and the plan of a changed fleet, side by side with the differences."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from kvplan_cli.output import View, cell, sentence, signed, table
from kvplan_cli.plan_files import plan_document
from kvplan_cli.plan_view import headline
from kvplan_operator.plan.planned import Planned

Figures = dict[str, float | None]
"""Value by name; None where there is none, such as the latency of a class that is rejected."""


_GROUPS = ", groups"


def what_if_view(today: Planned, changed: Planned, changes: Sequence[str]) -> View:
    """Every figure of both plans; configurations that run in neither are left out."""
    rows = list(_rows(figures(today), figures(changed)))
    document = {
        "changes": list(changes),
        "figures": [{"name": name, "today": old, "whatIf": new} for name, old, new in rows],
        "today": plan_document(today.plan),
        "whatIf": plan_document(changed.plan),
    }
    title = f"What if {', '.join(changes)}"
    shown = ([name, cell(old), cell(new), _change(old, new)] for name, old, new in rows)
    sections: list[RenderableType] = [
        sentence(f"today:   {headline(today)}"),
        sentence(f"what if: {headline(changed)}\n"),
        table(title, ("", "today", "what if", "change"), shown),
    ]
    return View(document, sections)


def _rows(today: Figures, changed: Figures) -> Iterator[tuple[str, float | None, float | None]]:
    for name in {**today, **changed}:
        old, new = today.get(name), changed.get(name)
        if old or new or not name.endswith(_GROUPS):
            yield name, old, new


def _change(old: float | None, new: float | None) -> str:
    return "–" if old is None or new is None else signed(new - old)


def figures(planned: Planned) -> Figures:
    """What people compare, by name with its unit."""
    costs, instance = planned.result.costs, planned.instance
    groups = dict(zip((k.name for k in instance.configurations), planned.result.groups, strict=True))
    sizes = {k.name: k.gpus for k in instance.configurations}
    found: Figures = {
        "cost per second": costs.total,
        "  reservation": costs.reservation,
        "  GPU time": costs.gpu,
        "  latency": costs.latency,
        "  rejection": costs.rejection,
        "GPUs used": float(sum(z * sizes[name] for name, z in groups.items())),
    }
    found |= {f"{name}{_GROUPS}": float(z) for name, z in groups.items()}
    for c, reserved in zip(planned.forecast.classes, planned.result.reservation_tokens, strict=True):
        found |= {
            f"{c.name}, requests per second": c.requests_per_second,
            f"{c.name}, admitted, %": 100 * c.admitted,
            f"{c.name}, reservation, tokens": float(reserved),
            f"{c.name}, mean latency, ms": None if c.response_seconds is None else 1000 * c.response_seconds,
            f"{c.name}, latency objective, ms": 1000 * c.slo_seconds,
        }
    return found
