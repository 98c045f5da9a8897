"""What a router costs while nothing happens: CPU, and memory by the size of its table.

In: a pace. Out: a table. A large table comes in shards, which a file cannot give: :mod:`big_table_router` reads those.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from e2e.router.parts import INDEX
from tests.bench.cpu import cpu_seconds_of, private_bytes_of, resident_bytes_of
from tests.bench.data_plane import DESTINATIONS, Plane, plane
from tests.bench.report import Row, table
from tests.bench.router_ways import Pace
from tests.bench.wrk import KEYS

_MIB = 2**20


def at_rest(pace: Pace) -> str:
    """Idle routers, small and large."""
    rows = [
        _row("native", KEYS, lambda made: made.start_router("native"), pace),
        _row("aio", KEYS, lambda made: made.start_router("aio"), pace),
        _row("native", pace.keys, lambda made: _start_with_keys(made, pace.keys), pace),
    ]
    return table(f"A router at rest, {pace.idle_seconds} s", rows)


def _row(transport: str, keys: int, start: Callable[[Plane], None], pace: Pace) -> Row:
    with plane() as made:
        start(made)
        pid = made.processes["router"].pid
        used, began = cpu_seconds_of(pid), time.monotonic()
        time.sleep(pace.idle_seconds)
        cores = (cpu_seconds_of(pid) - used) / (time.monotonic() - began)
        return {
            "transport": transport,
            "keys": f"{keys:,}",
            "cores": f"{cores:.3f}",
            "resident, MiB": f"{resident_bytes_of(pid) / _MIB:.0f}",
            "of it private, MiB": f"{private_bytes_of(pid) / _MIB:.0f}",
        }


def _start_with_keys(made: Plane, keys: int) -> None:
    homes = {f"key-{key}": [key % DESTINATIONS] for key in range(keys)}
    backups = {key: (home[0] + 1) % DESTINATIONS for key, home in homes.items()}
    encoded = replace(made.table, homes=homes, backups=backups).encoded()
    for shard in encoded.shards:
        (made.directory / shard.name).write_bytes(shard.data)
    (made.directory / INDEX).write_text(encoded.index)
    made.start_router("native", "tests.bench.big_table_router", table=str(made.directory))
