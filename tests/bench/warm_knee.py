"""What one engine carries of one hot key with its prefix cached: the knee that q_cap comes from.

In: requests of the trace. Out: first-token P99 by rate, and the knee. Each request keeps the prefix that the key's
requests share and gets an end of its own, so that an engine computes what it would in service. Source: 03-cacheroute
§3, capacity.knee.
"""

import asyncio
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice, takewhile
from random import Random

from e2e.router.bed import Bed
from kvplan_solver.cacheroute.capacity import knee
from tests.bench.envoy_policies import in_turn
from tests.bench.prefix_engines import engines, served
from tests.bench.prefix_trace import TraceRequest

RATES = (1, 2, 4, 8, 12, 16, 24, 32)
"""Requests per second of the trace's time."""
_SECONDS = 30.0
_SEED = 7
_NO_BLOCK = 10**9
"""The trace has no block ids from here on."""


def warm_knee(known: Sequence[TraceRequest], cache_tokens: int) -> tuple[float, dict[int, float]]:
    """Knee in requests per second of one engine, and seconds to the first token (P99) by rate.

    Raises:
        ValueError: the curve never bends upwards at these rates.
    """
    asyncio.run(_p99(known, cache_tokens, RATES[0]))  # an engine's first run is slower than any other
    curve = {rate: asyncio.run(_p99(known, cache_tokens, rate)) for rate in RATES}
    found = knee(list(curve), list(curve.values()))
    if found is None:
        raise ValueError(f"first-token P99 never bends upwards: {curve}; raise RATES")
    return found, curve


async def _p99(known: Sequence[TraceRequest], cache_tokens: int, rate: int) -> float:
    with Bed(engines(1, cache_tokens, in_turn)) as bed:
        first, *others = of_the_hottest_key(known, rate)
        await served(bed, [replace(first, at=0.0)])
        answers = await served(bed, others)
    return statistics.quantiles([one.first for one in answers], n=100, method="inclusive")[98]


def of_the_hottest_key(known: Sequence[TraceRequest], rate: int) -> Iterator[TraceRequest]:
    """Its requests again and again, by a Poisson process of this rate, each with an end that no other has."""
    ((hottest, _),) = Counter(request.key for request in known).most_common(1)
    own = [request for request in known if request.key == hottest]
    columns = zip(*(request.blocks for request in own), strict=False)
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    rng, at = Random(_SEED), 0.0
    for number, request in enumerate(islice(cycle(own), int(rate * _SECONDS) + 1)):
        ends = tuple(_NO_BLOCK + number * 1000 + n for n in range(len(request.blocks) - shared))
        yield replace(request, at=at, blocks=request.blocks[:shared] + ends)
        at += rng.expovariate(rate)
