"""Tables replaced while requests go on: how many fail.

In: a pace. Out: a table.
"""

import threading
from contextlib import ExitStack

from tests.bench.data_plane import Plane, with_generation
from tests.bench.report import Row, table
from tests.bench.router_ways import SMALL, Pace, routed, started
from tests.bench.wrk import Load, run


def swaps(pace: Pace) -> str:
    """Failures and delay of a load during swaps."""
    with ExitStack() as stack:
        rows = [_row(way.name, started(stack, way), pace.swaps) for way in map(routed, ("native", "aio"))]
    return table(f"{pace.swaps} tables replaced under load, 2 KB prompts, 16 connections", rows)


def _row(name: str, made: Plane, number: int) -> Row:
    done = threading.Event()
    swapping = threading.Thread(target=_swap, args=(made, number, done))
    swapping.start()
    seen = [run(made.urls[0], Load(SMALL))]
    while not done.is_set():
        seen.append(run(made.urls[0], Load(SMALL)))
    swapping.join()
    return {
        "way": name,
        "in force at the end": str(made.state()["generation"] - made.table.generation),
        "requests": f"{sum(answered.requests for answered in seen):,}",
        "failed": str(sum(answered.failed for answered in seen)),
        "unplanned": str(made.unplanned()),
        "worst P95, ms": f"{max(answered.p95 for answered in seen):.1f}",
    }


def _swap(made: Plane, number: int, done: threading.Event) -> None:
    try:
        for generation in range(1, number + 1):
            newer = with_generation(made.table, generation)
            made.publish(newer)
            made.until_in_force(newer)
    finally:
        done.set()
