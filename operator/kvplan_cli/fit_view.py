"""How a fit report looks to people: lengths, then demand, then the notes to read with them.

Input: a ``FitReport``. Output: a ``View``.
"""

from kvplan_cli.output import View, bullets, table
from kvplan_operator.model.fit_report import FitReport, Plain

_LENGTHS = ("class", "samples", "prompt", "p95", "max", "output", "p50", "p90", "p95", "p99", "max")
_DEMAND = ("class", "req/s", "Ca²", "overall", "prefix", "keys", "ε", "noise", "drift")


def fit_view(report: FitReport) -> View:
    """The report in both languages."""
    lengths = table("Lengths in tokens (prompt, output: means)", _LENGTHS, map(_lengths, report.rows))
    title = "Arrivals (Ca²: median of windows), shared prefix, ε = noise + drift"
    demand = table(title, _DEMAND, map(_demand, report.rows))
    notes = bullets("Notes", (f"{subject}: {note}" for subject, note in report.notes))
    return View(report.to_plain(), [lengths, demand, *notes])


def _lengths(row: Plain) -> list[object]:
    prompt, output = _part(row, "promptTokens"), _part(row, "outputTokens")
    return [
        row["class"],
        row["samples"],
        *(prompt.get(name) for name in ("mean", "p95", "max")),
        *(output[name] for name in ("mean", "p50", "p90", "p95", "p99", "max")),
    ]


def _demand(row: Plain) -> list[object]:
    radius = _part(row, "radius")
    names = ("class", "requestsPerSecond", "arrivalScv", "arrivalScvOverall", "sharedPrefixTokens", "keys")
    return [*(row[name] for name in names), radius["tokens"], radius["noiseTokens"], radius["driftTokens"]]


def _part(row: Plain, name: str) -> Plain:
    part = row[name]
    return part if isinstance(part, dict) else {}
