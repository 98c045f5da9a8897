"""How the honest facts look: ε as a step function, where Algorithm 1 stops, what headroom is for."""

from collections.abc import Sequence

from rich.console import RenderableType

from kvplan_cli.epsilon import order_at, radii_to_show, shift_thresholds
from kvplan_cli.headroom import HEADROOM, Refusals
from kvplan_cli.output import View, number, percent, sentence, table
from kvplan_cli.sticking import Ending
from kvplan_solver.instance import Ambiguity, ClassInput, Instance

_EPSILON_HEADINGS = ("ε, tokens", "ε/mean", "Wasserstein1", "WassersteinInf", "Scale", "")
_STICKING_HEADINGS = ("start", "groups at the end", "iterations", "cost per second", "× certified", "rejected")
_HEADROOM_HEADINGS = ("requests a group fits", "groups", "routers", "refused, ledger M/(1+κ)", "refused, ledger M")

Row = dict[str, object]


def epsilon_view(classes: Sequence[ClassInput]) -> View:
    """One table per class: the output reservation η* for a range of radii, by ambiguity set."""
    sections: list[RenderableType] = []
    document: list[Row] = []
    for c in classes:
        rows = _epsilon_rows(c)
        document.append({"class": c.name, "meanOutputTokens": c.output_tokens_mean, "orders": rows})
        title = (
            f"{c.name}: output tokens reserved (η*) by radius ε; "
            f"q = {c.fractile:.3f}, mean output {number(c.output_tokens_mean)}, Lmax {c.max_output_tokens:,}"
        )
        sections.append(table(title, _EPSILON_HEADINGS, (list(row.values()) for row in rows)))
        sections.append(_verdict(c))
    return View({"classes": document}, sections)


def _epsilon_rows(c: ClassInput) -> list[Row]:
    rows = []
    for radius, remark in radii_to_show(c):
        share = radius / c.output_tokens_mean if c.output_tokens_mean else 0.0
        rows.append(
            {
                "radiusTokens": radius,
                "radiusRelative": share,
                "wasserstein1": order_at(c, Ambiguity.WASSERSTEIN_1, radius).output_tokens,
                "wassersteinInf": order_at(c, Ambiguity.WASSERSTEIN_INF, radius).output_tokens,
                "scale": order_at(c, Ambiguity.SCALE, share).output_tokens,
                "remark": remark,
            }
        )
    return rows


def _verdict(c: ClassInput) -> RenderableType:
    first, second = shift_thresholds(c)
    return sentence(
        f"Under Wasserstein1 the order jumps at R = {number(first)} and at {number(second)} tokens and is flat "
        "in between: it does not grow with ε. WassersteinInf and Scale move it.\n"
    )


def sticking_view(instance: Instance, found: Sequence[Ending], source: str) -> View:
    """Where each start ended."""
    rows = [_sticking_row(instance, ending) for ending in found]
    worst = max(ending.ratio for ending in found)
    title = f"Algorithm 1 as printed, from different starts ({source})"
    sections: list[RenderableType] = [
        table(title, _STICKING_HEADINGS, ([*row.values()] for row in rows)),
        sentence(
            f"One instance, and ends up to {number(worst, 3)} times the certified cost: requests are only sent to "
            "configurations that have groups, and groups only change where today's routing still fits, so the end "
            "depends on the start."
        ),
    ]
    return View({"source": source, "endings": rows}, sections)


def _sticking_row(instance: Instance, ending: Ending) -> Row:
    result = ending.result
    named = zip(result.groups, instance.configurations, strict=True)
    rejected = {c.name: float(s) for c, s in zip(instance.classes, result.rejected, strict=True) if s > 5e-4}
    return {
        "start": ending.start,
        "groups": ", ".join(f"{z} × {k.name}" for z, k in named if z) or "none",
        "iterations": result.work.get("iterations"),
        "costPerSecond": result.objective,
        "timesCertified": ending.ratio,
        "rejected": ", ".join(f"{name} {percent(share, 0)}" for name, share in rejected.items()) or "nothing",
    }


def headroom_view(found: Sequence[Refusals]) -> View:
    """Both ledgers for each size."""
    rows: list[Row] = [
        {
            "requestsPerGroup": f.fitting,
            "groups": f.groups,
            "routers": f.routers,
            "refusedKeptFree": f.kept_free,
            "refusedGivenOut": f.given_out,
        }
        for f in found
    ]
    cells = ([f.fitting, f.groups, f.routers, percent(f.kept_free), percent(f.given_out)] for f in found)
    title = f"Requests refused at the mean that (6e) allows, κ = {HEADROOM}"
    told = sentence(
        "(6e) holds the mean to M/(1+κ). A ledger with that same limit is full at the planned mean; κ is the room in "
        "which concurrency moves around it."
    )
    return View({"headroom": HEADROOM, "refusals": rows}, [table(title, _HEADROOM_HEADINGS, cells), told])
