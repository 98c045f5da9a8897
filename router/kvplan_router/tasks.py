"""What one router process does besides answering: follow, probe, exchange, review. Loops that run until cancelled.

In: a :class:`Service` and what each loop asks. Out: calls of the service. Every loop is level-based: what one round
missed the next one finds.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

from kvplan_router.destinations.engines import Engines
from kvplan_router.exchange.peers import SEND_SECONDS, Address, Peers, addresses_of
from kvplan_router.guarded import GuardedRouter
from kvplan_router.service import Service
from kvplan_router.transport.estimate import EstimatedEnds

PROBE_SECONDS = 1.0
READING_SECONDS = 0.5
LEFTOVER_SECONDS = 2.0
REVIEW_SECONDS = 10.0


async def follow_pods(service: Service, ready: AsyncIterator[frozenset[str]]) -> None:
    """Take readiness from the cluster."""
    async for uids in ready:
        service.ready_pods(uids)


async def probe_engines(service: Service, engines: Engines) -> None:
    """Take readiness from the engines themselves; for fleets of tens, not of thousands."""
    while True:
        service.places_changed.clear()
        asked = frozenset(place.address for place in service.places)
        service.silent_addresses(asked - await engines.healthy(asked))
        try:
            await asyncio.wait_for(service.places_changed.wait(), PROBE_SECONDS)
        except TimeoutError:
            continue


async def exchange(
    service: Service, router: GuardedRouter, peers: Peers, given: frozenset[Address], identity: str
) -> None:
    """Tell peers what is in flight here, and notice those that fell silent."""
    while True:
        peers.addresses = given or addresses_of(service.routers, identity)
        state = router.state()
        peers.send(state.acknowledged, dict(state.in_flight))
        peers.forget_silent()
        service.peers(peers.reports.values())
        await asyncio.sleep(SEND_SECONDS)


async def settle_leftovers(service: Service, router: GuardedRouter, engines: Engines, peers: Peers) -> None:
    """Read again what engines hold until nothing is left that no router process knows of; ends then."""
    settled: set[str] = set()
    while pending := [place for place in service.places if place.slot not in settled]:
        held = await engines.requests_held(place.address for place in pending)
        service.engines_hold(held)
        known = Counter(router.state().in_flight)
        for report in peers.reports.values():
            known.update(report.in_flight)
        settled.update(place.slot for place in pending if held.get(place.address, 1) <= known[place.slot])
        await asyncio.sleep(LEFTOVER_SECONDS)


async def read_ends(service: Service, estimate: EstimatedEnds, engines: Engines, peers: Peers) -> None:
    """Learn from the engines how many requests have not ended."""
    while True:
        asked = time.monotonic()
        held = await engines.requests_held(place.address for place in service.places)
        elsewhere: Counter[str] = Counter()
        for report in peers.reports.values():
            elsewhere.update(report.in_flight)
        estimate.reading(
            {p.slot: max(0, held[p.address] - elsewhere[p.slot]) for p in service.places if p.address in held}, asked
        )
        await asyncio.sleep(READING_SECONDS)


async def review_keys(router: GuardedRouter) -> None:
    """Let keys enter and leave the counted set."""
    while True:
        await asyncio.sleep(REVIEW_SECONDS)
        router.review_keys()
