"""What the decision itself costs: the core alone, in this process, without a transport.

In: a pace. Out: a table. A figure is the least of several runs, because whatever else the machine does only adds.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

from e2e.router.tables import SECRET, WrittenTable
from kvplan_router.core.decide import Router
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.values import Pick, Request, Ticket
from kvplan_router.guarded import GuardedRouter
from kvplan_solver.cacheroute.table import read_index, read_table
from tests.bench.data_plane import DESTINATIONS
from tests.bench.report import Row, table
from tests.bench.router_ways import Pace
from tests.bench.wrk import KEY_HEADER, KEYS

RUNS, REQUESTS, OPEN = 8, 4_000, 16
_MICRO = 1e6
_ADDRESSES = [f"10.0.0.{number}:8000" for number in range(DESTINATIONS)]
_KEYS = range(KEYS)


def decision(pace: Pace) -> str:
    """CPU of one decision and of the end of its request, by the kind of home its key has."""
    alone = {f"key-{key}": [key % DESTINATIONS] for key in _KEYS}
    shared = {f"key-{key}": [key % DESTINATIONS, (key + 1) % DESTINATIONS] for key in _KEYS}
    backups = {key: (home[0] + 1) % DESTINATIONS for key, home in alone.items()}
    rows = [
        _row("planned, one destination and a backup", WrittenTable(_ADDRESSES, homes=alone, backups=backups), pace),
        _row("planned, two destinations", WrittenTable(_ADDRESSES, homes=shared), pace),
        _row("planned, two destinations, a session", WrittenTable(_ADDRESSES, homes=shared), pace, session=True),
        _row("not in the table", WrittenTable(_ADDRESSES), pace),
    ]
    return table(f"Decision and end of a request, without a transport; {OPEN} requests open", rows)


def _row(name: str, written: WrittenTable, pace: Pace, session: bool = False) -> Row:
    encoded = written.encoded()
    index = read_index(encoded.index)
    router = Router(SECRET, CoreSettings(), Random(1))
    router.install(index, read_table(index, {}))
    guarded, headers = GuardedRouter(router), [_headers(key, session) for key in _KEYS]
    least = min(_seconds(guarded, headers) for _ in range(RUNS * pace.rounds))
    return {"request": name, "CPU, µs": f"{least / REQUESTS * _MICRO:.1f}"}


def _headers(key: int, session: bool) -> dict[str, str]:
    """As Envoy sends them, by name."""
    named = {
        ":method": "POST", ":path": "/v1/completions", ":authority": "gateway", "content-type": "application/json",
        "content-length": "2000", "x-request-id": f"0b0f51ce-3a1c-4a4f-9d0e-{key:012d}", KEY_HEADER: f"key-{key}",
    }  # fmt: skip
    return named | ({"x-session-id": f"session {key}"} if session else {})


def _seconds(router: GuardedRouter, headers: Sequence[Mapping[str, str]]) -> float:
    """CPU seconds of all requests."""
    opened: deque[Ticket] = deque()
    started = time.process_time()
    for number in range(REQUESTS):
        picked = router.decide(Request(headers[number % KEYS], time.monotonic()))
        assert isinstance(picked, Pick)
        opened.append(picked.ticket)
        if len(opened) > OPEN:
            router.finish(opened.popleft(), None, time.monotonic())
    seconds = time.process_time() - started
    for ticket in opened:
        router.finish(ticket)
    return seconds
