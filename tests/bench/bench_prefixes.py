"""Planned homes against round robin and hashing alone, on a real trace of shared prefixes, through the real Envoy.

Four engine stand-ins; the same requests, in the trace's time made shorter, with engines as much faster. The plan knows
the rates of the trace's first third only; figures are of the rest, which every way serves after the first third.
"""

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from e2e.router.bed import Bed
from e2e.router.parts import Layout
from e2e.router.tables import KEY_HEADER, SECRET, ClassPolicy, WrittenTable
from kvplan_cli.sample_workload import data_directory
from kvplan_solver.cacheroute.inputs import Settings, fleet, key_rates
from kvplan_solver.cacheroute.keys import key_hash
from kvplan_solver.cacheroute.plan import plan_keys
from tests.bench.data_plane import as_it_is
from tests.bench.envoy_policies import by_hash, in_turn
from tests.bench.prefix_trace import LONGEST_TOKENS, TRACE, TraceRequest, read
from tests.bench.report import Row, table

ENGINES = 4
TIME_SCALE = 0.33
KNOWN_SHARE = 1 / 3
CACHES_TOKENS = (64_000, 40_960)
"""KV cache of an engine: room for a hot prefix beside what comes and goes, and hardly any."""
ENGINE = (
    "--block-size", "16", "--max-model-len", "40000", "--max-num-seqs", "64", "--enable-prompt-tokens-details",
    "--stand-in-time-scale", str(TIME_SCALE),
)  # fmt: skip
WARM_SLOTS = 8
Q_CAP = 1.5
"""Requests per second of one key on one engine: a quarter of what four compute of this trace without a cache."""


@dataclass(frozen=True)
class Served:
    """One request as the client saw it: hit tokens of its prompt, seconds to the first and the last byte."""

    asked: TraceRequest
    status: int
    hit_tokens: int
    first: float
    last: float


@dataclass(frozen=True)
class Way:
    """One way to choose an engine."""

    name: str
    edit: Callable[[dict[str, Any]], None]
    homes: bool = False


def _by_hash(document: dict[str, Any]) -> None:
    by_hash(document, KEY_HEADER)


WAYS = (
    Way("round robin (Envoy alone)", in_turn),
    Way("hash of the key (Envoy alone)", _by_hash),
    Way("kvplan, no key planned", as_it_is),
    Way("kvplan, planned homes", as_it_is, homes=True),
)


def section() -> str:
    """A table for each size of the cache."""
    directory = data_directory()
    if not (directory / TRACE).is_file():
        return f"Skipped: no {TRACE} in {directory}.\n"
    requests = read(directory)
    known = [request for request in requests if request.at < KNOWN_SHARE * requests[-1].at]
    return "\n".join(_table(cache_tokens, known, requests) for cache_tokens in CACHES_TOKENS)


def _table(cache_tokens: int, known: Sequence[TraceRequest], requests: Sequence[TraceRequest]) -> str:
    homes = planned_homes(known, cache_tokens)
    rows = [_row(way, homes, known, asyncio.run(_served(way, homes, requests, cache_tokens))) for way in WAYS]
    title = (
        f"Prefix hits on {TRACE}: {len(requests) - len(known)} requests after the {len(known)} that the plan knows, "
        f"{ENGINES} engines of {cache_tokens:,} tokens, prompts up to {LONGEST_TOKENS:,}; {len(homes)} keys planned"
    )
    return table(title, rows)


def planned_homes(known: Sequence[TraceRequest], cache_tokens: int) -> dict[str, list[int]]:
    """Where CacheRoute's planner puts the keys seen so far, engines by number."""
    seconds = max(request.at for request in known) or 1.0
    counts = Counter(request.key for request in known)
    hashes = {key_hash(SECRET, "chat", f"header:{KEY_HEADER}", key): key for key in counts}
    rates = key_rates(list(hashes), [counts[key] / seconds for key in hashes.values()])
    where = fleet([f"tp1-{n}" for n in range(ENGINES)], warm_slots=WARM_SLOTS)
    window = cache_tokens * ENGINES / (sum(request.prompt_tokens for request in known) / seconds)
    plan = plan_keys(rates, where, Settings(q_cap=Q_CAP, eviction_window_seconds=window, backups=False))
    return {hashes[key]: [int(slot.rpartition("-")[2]) for slot in plan.home(key)] for key in map(int, plan.keys)}


async def _served(
    way: Way, homes: dict[str, list[int]], requests: Sequence[TraceRequest], cache_tokens: int
) -> list[Served]:
    engine = (*ENGINE, "--num-gpu-blocks-override", str(cache_tokens // 16))
    layout = Layout(upstreams=ENGINES, engine=engine, edit=way.edit)
    with Bed(layout) as bed:
        policy = ClassPolicy(reservation_tokens=1)
        bed.publish(WrittenTable(bed.addresses, generation=2, classes=[policy], homes=homes if way.homes else {}))
        timeout = ClientTimeout(total=600)
        async with ClientSession(connector=TCPConnector(limit=0), timeout=timeout) as session:
            began = time.monotonic()
            return await asyncio.gather(*(_ask(session, bed.url, began, request) for request in requests))


async def _ask(session: ClientSession, url: str, began: float, request: TraceRequest) -> Served:
    body = json.dumps({
        "model": "tiny", "prompt": request.prompt(), "max_tokens": request.output_tokens, "ignore_eos": True,
        "stream": True, "stream_options": {"include_usage": True},
    })  # fmt: skip
    headers = {KEY_HEADER: request.key, "content-type": "application/json"}
    await asyncio.sleep(began + request.at * TIME_SCALE - time.monotonic())
    asked = time.monotonic()
    async with session.post(f"{url}/v1/completions", data=body, headers=headers) as got:
        first, hit = 0.0, 0
        async for line in got.content:
            first = first or time.monotonic() - asked
            if b'"cached_tokens"' in line:
                hit = json.loads(line.removeprefix(b"data: "))["usage"]["prompt_tokens_details"]["cached_tokens"]
        return Served(request, got.status, hit, first, time.monotonic() - asked)


def _row(way: Way, homes: dict[str, list[int]], known: Sequence[TraceRequest], served: Sequence[Served]) -> Row:
    later = served[len(known) :]
    admitted = [one for one in later if one.asked.key in homes]
    firsts = [one.first / TIME_SCALE for one in later]
    return {
        "way": way.name,
        "hit rate of planned keys": _hit_rate(admitted),
        "hit rate of all": _hit_rate(later),
        "first token P50 / P95 (s)": f"{statistics.median(firsts):.2f} / {_percentile(firsts, 95):.2f}",
        "whole answer P95 (s)": f"{_percentile([one.last / TIME_SCALE for one in later], 95):.1f}",
        "not 200": str(sum(one.status != 200 for one in served)),
    }


def _hit_rate(served: Sequence[Served]) -> str:
    asked = sum(one.asked.prompt_tokens for one in served)
    return f"{sum(one.hit_tokens for one in served) / asked:.1%}" if asked else "no request"


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
