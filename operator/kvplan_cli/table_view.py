"""How a routing table looks: what became of the keys, how even the loads are, how large the table is."""

from collections.abc import Sequence

import numpy as np

from kvplan_cli.output import View, bullets, number, percent, sentence, table
from kvplan_operator.plan.table_input import PlannedTable
from kvplan_solver.cacheroute.install import loads_at
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.replan import moved_pairs

Rows = list[tuple[str, object, str]]


def table_view(made: PlannedTable, before: KeyPlan | None, remarks: Sequence[str]) -> View:
    """The report of a table."""
    keys = made.keys
    rows = [*_key_rows(made), *_load_rows(made, before), *_size_rows(made)]
    document = {
        "outcome": keys.outcome.value,
        "figures": {name: value for name, value, _ in rows},
        "oversized": [f"{key:016x}" for key in keys.report.oversized],
        "loads": dict(zip(keys.destinations, keys.loads.tolist(), strict=True)),
        "notes": [*remarks, *made.input.notes],
    }
    verdict = (
        f"{len(keys.keys)} keys have a home on {len(keys.destinations)} destinations."
        if keys.outcome is Outcome.PLANNED
        else f"No table ({keys.outcome.value}): the one in force stays."
    )
    sections = [
        sentence(verdict, "bold"),
        table("Routing table", ("", "value", ""), rows),
        *bullets("Oversized keys (they need more destinations than there are)", document["oversized"]),
        *bullets("Notes", document["notes"]),
    ]
    return View(document, sections)


def _key_rows(made: PlannedTable) -> Rows:
    report, measured = made.keys.report, made.input.rates
    total = report.admitted_rate + report.cold_rate
    share = percent(report.admitted_rate / total) if total > 0 else "no traffic"
    dropped = report.dropped
    return [
        ("keys measured", len(measured), ""),
        ("keys admitted", len(made.keys.keys), f"{share} of the traffic"),
        ("too slow to stay warm", report.below_floor, "rate × eviction window below 1"),
        (
            "did not fit",
            report.skipped + report.unplaced,
            f"{report.slots_used:,} of {report.slots:,} warm slots used",
        ),
        ("beyond their tenant's share", report.tenant_capped, ""),
        ("oversized", len(report.oversized), "capped at all destinations of their class"),
        ("invalid rates", dropped.invalid, "NaN, infinite or negative; dropped"),
        ("idle", dropped.idle, "rate 0"),
        ("unreliable", dropped.unreliable, "error above half of the rate"),
        ("no destination", dropped.ineligible, "their class is routed nowhere"),
        ("hash collisions", len(made.encoded.collided), "the colder key was dropped"),
    ]


def _load_rows(made: PlannedTable, before: KeyPlan | None) -> Rows:
    settings, loads = made.input.settings, made.keys.loads
    knee = made.input.capacity.knee if made.input.capacity else None
    rows: Rows = [
        (
            "q_cap, requests per second",
            float(settings.q_cap),
            f"knee {number(knee)}" if knee else "set in the fleet",
        ),
        ("largest load, requests per second", float(loads.max(initial=0.0)), ""),
        ("largest/mean load per planned load", evenness(made.keys, loads), "1 is even"),
    ]
    if before is not None and len(before.keys) and len(made.keys.keys):
        moved, pairs = moved_pairs(before, made.keys)
        old = evenness(made.keys, loads_at(before, made.keys))
        rows.append(("the same for the table before", old, "at today's rates"))
        rows.append(("pairs moved", moved, f"of {pairs:,}: {percent(moved / pairs if pairs else 0.0)}"))
    return rows


def evenness(plan: KeyPlan, loads: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Largest load per weight over the mean one; 0 without load."""
    usable = plan.weights > 0
    mean = float(loads[usable].sum() / plan.weights[usable].sum()) if usable.any() else 0.0
    return float((loads[usable] / plan.weights[usable]).max()) / mean if mean > 0 else 0.0


def _size_rows(made: PlannedTable) -> Rows:
    shards = made.encoded.shards
    return [
        ("index, bytes", len(made.encoded.index), "all keys inline" if not shards else ""),
        ("shards", len(shards), ""),
        ("shards, bytes", sum(len(shard.data) for shard in shards), ""),
    ]
