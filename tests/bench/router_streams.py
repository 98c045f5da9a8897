"""Many answers open at once: what each costs the router and Envoy, and whether every one arrives whole.

In: a pace. Out: a table. Two Envoys before one router: each holds half the streams, because an open answer takes two
descriptors there. Streams are opened a few at a time, as clients come, and end together, when the destinations let go.
"""

import asyncio
import resource

from e2e.harness.readiness import until
from e2e.router.filters import be_patient
from tests.bench.cpu import resident_bytes_of
from tests.bench.data_plane import Plane, get, plane, that_hold
from tests.bench.holding_upstream import FIRST, LAST
from tests.bench.report import Row, table
from tests.bench.router_ways import Pace

TRANSPORTS = ("native", "aio")
ENVOYS = 2
AT_A_TIME = 50
SPARE = 500
"""Descriptors that a process needs besides those of its streams."""
_REQUEST = b"POST /v1/completions HTTP/1.1\r\nhost: bench\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


def streams(pace: Pace) -> str:
    """Memory of held streams, and how many were lost."""
    held = min(pace.streams, _room() - SPARE)
    few = "" if held == pace.streams else f", fewer than {pace.streams:,}: the limit on open files is too low"
    rows = [asyncio.run(_row(transport, held)) for transport in TRANSPORTS]
    return table(f"{held:,} server-sent streams held open{few}", rows)


def _room() -> int:
    """Open files that a process may have: this one's limit is raised as far as it goes, and inherited."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


async def _row(transport: str, number: int) -> Row:
    with plane(that_hold) as made:
        made.start_router(transport)
        for envoy in range(ENVOYS):
            made.start_envoy(be_patient, role=f"Envoy {envoy}")
        before = _resident(made)
        answers = await _open(made, number)
        seen = await asyncio.to_thread(_in_flight, made)
        held = {role: more - before[role] for role, more in _resident(made).items()}
        await asyncio.to_thread(get, f"http://{made.addresses[0]}/let-go")
        whole = sum(await asyncio.gather(*answers))
        await asyncio.to_thread(until, lambda: not _in_flight(made), "nothing in flight", made.processes["router"])
    router = held.pop("router")
    return {
        "transport": transport,
        "in flight, as the router counts": f"{seen:,}",
        "lost": str(number - whole),
        "router at rest, MB": f"{before['router'] / 1e6:.0f}",
        "router, KB per stream": f"{router / number / 1e3:.1f}",
        "Envoys, KB per stream": f"{sum(held.values()) / number / 1e3:.1f}",
    }


def _resident(made: Plane) -> dict[str, int]:
    return {role: resident_bytes_of(process.pid) for role, process in made.processes.items()}


def _in_flight(made: Plane) -> int:
    return sum(made.state()["inFlight"].values())


async def _open(made: Plane, number: int) -> list["asyncio.Task[bool]"]:
    """Open streams; each has begun when this returns, and its task tells whether it ended whole."""
    tasks: list[asyncio.Task[bool]] = []
    while len(tasks) < number:
        some = range(min(AT_A_TIME, number - len(tasks)))
        opened = await asyncio.gather(*(_begin(made.urls[n % ENVOYS]) for n in some))
        tasks += [asyncio.create_task(_ends_whole(*stream)) for stream in opened]
    return tasks


async def _begin(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(_REQUEST)
    await reader.readuntil(FIRST)
    return reader, writer


async def _ends_whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    try:
        return LAST in await reader.read()
    except ConnectionError:
        return False
    finally:
        writer.close()
