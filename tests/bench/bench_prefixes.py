"""Planned homes against round robin and hashing alone, on a real trace of shared prefixes, through the real Envoy.

Four engine stand-ins; the same requests, in the trace's time made shorter, with engines as much faster. The plan knows
the rates of the trace's first third only; figures are of the rest, which every way serves after the first third.
"""

import asyncio
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from e2e.router.bed import Bed
from e2e.router.tables import KEY_HEADER, SECRET, ClassPolicy, WrittenTable
from kvplan_cli.sample_workload import data_directory
from kvplan_solver.cacheroute.capacity import KeyCapacity
from kvplan_solver.cacheroute.inputs import Settings, fleet, key_rates
from kvplan_solver.cacheroute.keys import key_hash
from kvplan_solver.cacheroute.plan import plan_keys
from tests.bench.data_plane import as_it_is
from tests.bench.envoy_policies import by_hash, in_turn
from tests.bench.prefix_engines import Served, engines, served
from tests.bench.prefix_trace import LONGEST_TOKENS, TRACE, TraceRequest, read
from tests.bench.report import Row, table
from tests.bench.warm_knee import warm_knee

ENGINES = 4
KNOWN_SHARE = 1 / 3
CACHES_TOKENS = (64_000, 40_960)
"""KV cache of an engine: room for a hot prefix beside what comes and goes, and hardly any."""
WARM_SLOTS = 8


@dataclass(frozen=True)
class Way:
    """One way to choose an engine.

    Attributes:
        edit: of Envoy's configuration.
        homes: whether the table has the planned ones.
        runs: figures are means over them; ways that place by key vary with where a hash falls or the cold tail goes.
    """

    name: str
    edit: Callable[[dict[str, Any]], None]
    homes: bool = False
    runs: int = 1


def _by_hash(document: dict[str, Any]) -> None:
    by_hash(document, KEY_HEADER)


WAYS = (
    Way("round robin (Envoy alone)", in_turn),
    Way("hash of the key (Envoy alone)", _by_hash, runs=3),
    Way("kvplan, no key planned", as_it_is),
    Way("kvplan, planned homes", as_it_is, homes=True, runs=3),
)


def section() -> str:
    """A table for each size of the cache."""
    directory = data_directory()
    if not (directory / TRACE).is_file():
        return f"Skipped: no {TRACE} in {directory}.\n"
    requests = read(directory)
    known = [request for request in requests if request.at < KNOWN_SHARE * requests[-1].at]
    bend, curve = warm_knee(known, CACHES_TOKENS[0])
    told = [_knee_told(bend, curve), *(_table(cache_tokens, bend, known, requests) for cache_tokens in CACHES_TOKENS)]
    return "\n".join(told)


def _knee_told(bend: float, curve: Mapping[int, float]) -> str:
    points = ", ".join(f"{seconds:.2f} s at {rate}" for rate, seconds in curve.items())
    return f"One engine, the hottest key warm: first token P99 {points} requests per second; the knee is {bend:g}.\n"


def _table(cache_tokens: int, bend: float, known: Sequence[TraceRequest], requests: Sequence[TraceRequest]) -> str:
    homes = planned_homes(known, cache_tokens, bend)
    rows = [
        _row(way, homes, known, [asyncio.run(_served(way, homes, requests, cache_tokens)) for _ in range(way.runs)])
        for way in WAYS
    ]
    title = (
        f"Prefix hits on {TRACE}: {len(requests) - len(known)} requests after the {len(known)} that the plan knows, "
        f"{ENGINES} engines of {cache_tokens:,} tokens, prompts up to {LONGEST_TOKENS:,}; {len(homes)} keys planned"
    )
    return table(title, rows)


def planned_homes(known: Sequence[TraceRequest], cache_tokens: int, bend: float) -> dict[str, list[int]]:
    """Where CacheRoute's planner puts the keys seen so far, engines by number."""
    seconds = max(request.at for request in known) or 1.0
    counts = Counter(request.key for request in known)
    hashes = {key_hash(SECRET, "chat", f"header:{KEY_HEADER}", key): key for key in counts}
    rates = key_rates(list(hashes), [counts[key] / seconds for key in hashes.values()])
    where = fleet([f"tp1-{n}" for n in range(ENGINES)], warm_slots=WARM_SLOTS)
    window = cache_tokens * ENGINES / (sum(request.prompt_tokens for request in known) / seconds)
    come_again = sum(many for many in counts.values() if many > 1)
    capacity = KeyCapacity(bend, cold_share=1 - come_again / len(known))
    plan = plan_keys(rates, where, Settings(q_cap=capacity.q_cap, eviction_window_seconds=window, backups=False))
    return {hashes[key]: [int(slot.rpartition("-")[2]) for slot in plan.home(key)] for key in map(int, plan.keys)}


async def _served(
    way: Way, homes: dict[str, list[int]], requests: Sequence[TraceRequest], cache_tokens: int
) -> list[Served]:
    with Bed(engines(ENGINES, cache_tokens, way.edit)) as bed:
        policy = ClassPolicy(reservation_tokens=1)
        bed.publish(WrittenTable(bed.addresses, generation=2, classes=[policy], homes=homes if way.homes else {}))
        return await served(bed, requests)


def _row(way: Way, homes: dict[str, list[int]], known: Sequence[TraceRequest], runs: Sequence[list[Served]]) -> Row:
    later = [answers[len(known) :] for answers in runs]
    admitted = [[one for one in answers if one.asked.key in homes] for answers in later]
    firsts = [[one.first for one in answers] for answers in later]
    first_p95 = statistics.fmean(_percentile(run, 95) for run in firsts)
    whole_p95 = statistics.fmean(_percentile([one.last for one in answers], 95) for answers in later)
    return {
        "way": way.name,
        "runs": str(way.runs),
        "hit rate of planned keys": _told(list(map(_hit_rate, admitted))),
        "hit rate of all": _told(list(map(_hit_rate, later))),
        "first token P50 / P95 (s)": f"{statistics.fmean(map(statistics.median, firsts)):.2f} / {first_p95:.2f}",
        "whole answer P95 (s)": f"{whole_p95:.1f}",
        "not 200": str(sum(one.status != 200 for answers in runs for one in answers)),
    }


def _hit_rate(answers: Sequence[Served]) -> float:
    return sum(one.hit_tokens for one in answers) / max(1, sum(one.asked.prompt_tokens for one in answers))


def _told(rates: Sequence[float]) -> str:
    """The mean, and between what the runs were."""
    between = f" ({min(rates):.1%} to {max(rates):.1%})" if len(rates) > 1 else ""
    return f"{statistics.fmean(rates):.1%}{between}"


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
