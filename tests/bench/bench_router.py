"""What a decision costs: Envoy asking the router, against Envoy that asks nobody, in one run on one machine.

CPU per request is user and system time of the processes between client and destinations; it says more than
latencies where others use the machine too. All ways stand side by side, idle ones cost next to nothing, and the rounds
take turns, so that a busy minute meets all of them; every figure is the median of the rounds.

Needs ``wrk``, the native extension and, for one row, the package index.
"""

import asyncio
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from e2e.router.bed import Bed
from e2e.router.client import Answer, Client, eventually
from e2e.router.filters import ext_proc
from e2e.router.parts import Layout, with_options
from tests.bench.cpu import resident_bytes_of
from tests.bench.data_plane import (
    DESTINATIONS,
    VLLM_ROUTER,
    Plane,
    as_it_is,
    ask_nobody,
    follow_no_retries,
    plane,
    with_generation,
)
from tests.bench.report import Row, table
from tests.bench.wrk import Answered, Load, run

ROUNDS = 3
SMALL, LARGE = 2_000, 220_000
SWAPS = 20
STREAMS, STREAMS_AT_A_TIME = 1_000, 25
_MICRO = 1e6


@dataclass(frozen=True)
class Way:
    """One way for a request to find its destination.

    Attributes:
        name: in the tables.
        start: what stands between client and destinations.
    """

    name: str
    start: Callable[[Plane], None]


def _plain(made: Plane) -> None:
    made.start_router("aio")  # it writes Envoy's endpoints file
    made.processes.pop("router").stop()
    made.start_envoy(ask_nobody)


def _looks_up(transport: str) -> Callable[[Plane], None]:
    def start(made: Plane) -> None:
        made.start_look_up(transport)
        made.start_envoy()

    return start


def _routes(transport: str, edit: Callable[[dict[str, Any]], None] = as_it_is) -> Callable[[Plane], None]:
    def start(made: Plane) -> None:
        made.start_router(transport)
        made.start_envoy(edit)

    return start


PLAIN = Way("Envoy alone", _plain)
NATIVE = Way("router, native", _routes("native"))
LEAN = Way("router, native, retries not followed", _routes("native", follow_no_retries))
AIO = Way("router, aio", _routes("aio"))
VLLM = Way(f"{VLLM_ROUTER.replace('==', ' ')}, consistent_hash", lambda made: made.start_vllm_router("consistent_hash"))
LOOK_UPS = (Way("look-up, native", _looks_up("native")), Way("look-up, aio", _looks_up("aio")))


@dataclass(frozen=True)
class Round:
    """One run of a load.

    Attributes:
        answered: as the client saw it.
        micros: CPU microseconds per request, by role.
        unplanned: requests that went on without a decision.
    """

    answered: Answered
    micros: dict[str, float]
    unplanned: int


def section() -> str:
    """All tables."""
    if shutil.which("wrk") is None:
        return "Skipped: `wrk` is not installed.\n"
    parts = [_costs(), _delays(), _swaps(), _streams()]
    return "\n".join(parts)


def _costs() -> str:
    ways = (PLAIN, *LOOK_UPS, NATIVE, LEAN, AIO, VLLM)
    with ExitStack() as stack:
        planes = {way.name: _started(stack, way) for way in ways}
        tables = [_cost_table(planes, size, title) for size, title in ((SMALL, "2 KB"), (LARGE, "220 KB"))]
    return "\n".join(tables)


def _started(stack: ExitStack, way: Way) -> Plane:
    made = stack.enter_context(plane())
    way.start(made)
    run(made.url, Load(SMALL, seconds=1))  # connections are open, code paths warm
    return made


def _rounds(planes: dict[str, Plane], load: Load) -> dict[str, list[Round]]:
    """The rounds of every way; the ways take turns."""
    found: dict[str, list[Round]] = {name: [] for name in planes}
    for _ in range(ROUNDS):
        for name, made in planes.items():
            found[name].append(_round(made, load))
    return found


def _round(made: Plane, load: Load) -> Round:
    before, unplanned = made.cpu_seconds(), made.unplanned()
    answered = run(made.url, load)
    after = made.cpu_seconds()
    micros = {role: (after[role] - before[role]) / answered.requests * _MICRO for role in after}
    return Round(answered, micros, made.unplanned() - unplanned)


def _cost_table(planes: dict[str, Plane], size: int, title: str) -> str:
    rounds = _rounds(planes, Load(size, seconds=3))
    plain = median(sum(r.micros.values()) for r in rounds[PLAIN.name])
    rows = [_cost_row(name, found, plain) for name, found in rounds.items()]
    return table(
        f"CPU of a request, {title} prompts, 16 connections, {DESTINATIONS} destinations, one Envoy worker", rows
    )


def _cost_row(name: str, rounds: list[Round], plain: float) -> Row:
    whole = median(sum(r.micros.values()) for r in rounds)
    return {
        "way": name,
        "router, µs": _micros(rounds, "router"),
        "Envoy, µs": _micros(rounds, "Envoy"),
        "both, µs": f"{whole:.0f}",
        "× Envoy alone": f"{whole / plain:.1f}",
        "requests/s": f"{median(r.answered.requests / r.answered.seconds for r in rounds):,.0f}",
        "failed": str(sum(r.answered.failed for r in rounds)),
        "unplanned": str(sum(r.unplanned for r in rounds)),
    }


def _micros(rounds: list[Round], role: str) -> str:
    found = [r.micros[role] for r in rounds if role in r.micros]
    return f"{median(found):.0f}" if found else "–"


def _delays() -> str:
    """Each of 16 connections pauses 32 ms, which makes 500 requests a second while answers are fast."""
    with ExitStack() as stack:
        planes = {way.name: _started(stack, way) for way in (PLAIN, NATIVE, AIO, VLLM)}
        rounds = _rounds(planes, Load(SMALL, seconds=5, pause_milliseconds=32))
    plain = median(r.answered.p95 for r in rounds[PLAIN.name])
    return table("Delay at 500 requests/s, 2 KB prompts", [_delay_row(n, found, plain) for n, found in rounds.items()])


def _delay_row(name: str, rounds: list[Round], plain: float) -> Row:
    p95 = median(r.answered.p95 for r in rounds)
    return {
        "way": name,
        "requests/s": f"{median(r.answered.requests / r.answered.seconds for r in rounds):,.0f}",
        "P50, ms": f"{median(r.answered.p50 for r in rounds):.2f}",
        "P95, ms": f"{p95:.2f}",
        "P95 added, ms": f"{p95 - plain:.2f}",
        "failed": str(sum(r.answered.failed for r in rounds)),
        "unplanned": str(sum(r.unplanned for r in rounds)),
    }


def _swaps() -> str:
    with ExitStack() as stack:
        rows = [_swap_row(way.name, _started(stack, way)) for way in (NATIVE, AIO)]
    return table(f"{SWAPS} tables replaced under load, 2 KB prompts, 16 connections", rows)


def _swap_row(name: str, made: Plane) -> Row:
    done = threading.Event()
    swapped = threading.Thread(target=_swap, args=(made, done))
    swapped.start()
    answered = Answered(0, 0.0, 0, 0.0, 0.0)
    worst = 0.0
    while not done.is_set():
        more = run(made.url, Load(SMALL, seconds=2))
        worst = max(worst, more.p95)
        answered = Answered(answered.requests + more.requests, 0.0, answered.failed + more.failed, 0.0, worst)
    swapped.join()
    return {
        "way": name,
        "requests": f"{answered.requests:,}",
        "failed": str(answered.failed),
        "P95, ms": f"{worst:.1f}",
    }


def _swap(made: Plane, done: threading.Event) -> None:
    try:
        for number in range(1, SWAPS + 1):
            newer = with_generation(made.table, number)
            made.publish(newer)
            made.until_in_force(newer)
    finally:
        done.set()


def _streams() -> str:
    rows = [asyncio.run(_stream_row(transport)) for transport in ("native", "aio")]
    return table(f"{STREAMS:,} server-sent streams held open", rows)


def _holds(bed: Bed, number: int) -> Callable[[], bool]:
    return lambda: sum(bed.in_flight().values()) == number


def _patient(document: dict[str, Any]) -> None:
    """Let no busy moment of the machine turn a held stream into an unplanned one."""
    ext_proc(document)["message_timeout"] = "30s"


async def _open_streams(bed: Bed, client: Client) -> list[asyncio.Task[Answer]]:
    """Some at a time, as clients come."""
    streams: list[asyncio.Task[Answer]] = []
    while len(streams) < STREAMS:
        streams += [asyncio.create_task(client.stream(10_000, 30)) for _ in range(STREAMS_AT_A_TIME)]
        await eventually(bed, _holds(bed, len(streams)), "all open")
    return streams


async def _stream_row(transport: str) -> Row:
    with Bed(with_options(Layout(edit=_patient), transport=transport)) as bed:
        processes = {"router": bed.routers[0].pid, "Envoy": bed.envoy.pid}
        async with Client(bed) as client:
            await client.ask()
            before = {role: resident_bytes_of(pid) for role, pid in processes.items()}
            streams = await _open_streams(bed, client)
            held = {role: resident_bytes_of(pid) - before[role] for role, pid in processes.items()}
            for stream in streams:
                stream.cancel()
            await asyncio.wait(streams)
            await eventually(bed, _holds(bed, 0), "none left", 60)
    return {
        "transport": transport,
        "router at rest, MB": f"{before['router'] / 1e6:.0f}",
        **{f"{role}, KB per stream": f"{more / STREAMS / 1e3:.0f}" for role, more in held.items()},
    }
