"""The page at the end: the same traffic on the same GPUs, by stock flags and round-robin, and by the plan.

Inputs: figures per phase, what clients counted, where the traffic came from. Outputs: `report.html` and `report.png`
in a directory. It tells losses as well as gains; a figure that was not measured is a dash.
"""

import base64
import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from e2e.loop.asking import End
from e2e.loop.load import Mix, Tally
from e2e.loop.measures import Measures
from kvplan_cli.plots.style import BLUE, ORANGE, new_figure, quiet_axes


@dataclass(frozen=True)
class Phase:
    """One stretch of the demonstration.

    Attributes:
        name: of the phase, as a column's head.
        mix: requests per second by class.
        measures: from Prometheus.
        tally: what the clients counted.
        planned: whether kvplan routed.
        groups: what ran, in words.
    """

    name: str
    mix: Mix
    measures: Measures
    tally: Tally
    planned: bool
    groups: str


@dataclass(frozen=True)
class Row:
    """One figure of the table: its name, how it is found and written."""

    name: str
    value: Callable[[Phase], float]
    written: str


ROWS = (
    Row("requests finished", lambda p: p.measures.requests, "{:,.0f}"),
    Row("latency P50, s", lambda p: p.measures.latency_p50, "{:.2f}"),
    Row("latency P99, s", lambda p: p.measures.latency_p99, "{:.2f}"),
    Row("time to first token P99, s", lambda p: p.measures.first_token_p99, "{:.2f}"),
    Row("prompt tokens found in a cache", lambda p: p.measures.hit_rate, "{:.1%}"),
    Row("preemptions", lambda p: p.measures.preemptions, "{:,.0f}"),
    Row("load, busiest over mean engine", lambda p: p.measures.load_ratio, "{:.2f}"),
    Row("KV cache in use, mean", lambda p: p.measures.kv_usage, "{:.1%}"),
    Row("answers whole, by the clients", lambda p: p.tally.count(End.WHOLE), "{:,.0f}"),
    Row("refused with 429", lambda p: p.tally.count(End.SHED), "{:,.0f}"),
    Row("failed or cut short", lambda p: p.tally.count(End.FAILED) + p.tally.count(End.TRUNCATED), "{:,.0f}"),
)
_DRAWN = (1, 2, 3, 4, 5, 6)
_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}img{max-width:100%}"""


def write(directory: Path, phases: Sequence[Phase], source: str) -> Path:
    """Write page and picture; return the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    picture = directory / "report.png"
    draw(phases).savefig(picture)
    page = directory / "report.html"
    page.write_text(_page(phases, source, picture.read_bytes()), encoding="utf-8")
    return page


def draw(phases: Sequence[Phase]) -> Figure:
    """A small chart per figure, a bar per phase."""
    figure = new_figure(11, 6)
    for place, number in enumerate(_DRAWN, start=1):
        row, axes = ROWS[number], figure.add_subplot(2, 3, place)
        values = [_or_zero(row.value(phase)) for phase in phases]
        bars = axes.bar(range(len(phases)), values, color=[BLUE if phase.planned else ORANGE for phase in phases])
        axes.bar_label(bars, [_written(row, phase) for phase in phases], fontsize=8)
        axes.set_title(row.name, fontsize=10, loc="left")
        axes.set_xticks(range(len(phases)), [phase.name.replace(", ", "\n") for phase in phases], fontsize=8)
        quiet_axes(axes)
    return figure


def _page(phases: Sequence[Phase], source: str, picture: bytes) -> str:
    heads = "".join(f"<th>{html.escape(phase.name)}</th>" for phase in phases)
    rows = [_table_row("runs", [phase.groups for phase in phases])]
    rows += [_table_row("asked, requests a second", [_mix(phase.mix) for phase in phases])]
    rows += [_table_row(row.name, [_written(row, phase) for phase in phases]) for row in ROWS]
    shown = base64.b64encode(picture).decode()
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>kvplan: before and after</title>
<style>{_STYLE}</style><h1>Before and after</h1>
<p>The same GPUs and the same traffic ({html.escape(source)}): first engines with stock flags that clients take in turn,
then the plan. Engines are stand-ins that schedule as vLLM does and compute nothing; times are theirs, on this machine.
Figures are from Prometheus, except what the clients counted.</p>
<table><tr><th></th>{heads}</tr>{"".join(rows)}</table>
<img alt="the figures as bars" src="data:image/png;base64,{shown}">
</html>
"""


def _table_row(name: str, cells: Sequence[str]) -> str:
    return f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"


def _mix(mix: Mix) -> str:
    return ", ".join(f"{name} {rate:g}" for name, rate in mix.items())


def _written(row: Row, phase: Phase) -> str:
    value = row.value(phase)
    return "-" if math.isnan(value) else row.written.format(value)


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
