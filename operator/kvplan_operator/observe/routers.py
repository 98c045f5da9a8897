"""What each router of a fleet says of itself: the acknowledgement that drain steps wait for.

Inputs: the fleet, pods, which URLs the operator allows, the facts before. Outputs: one ``Fact`` per router, by pod name
or URL. One that is not Ready yet is asked too: it becomes so when the index names it, and it alone knows its name. A
live router that does not answer is a fact as well: its silence holds a drain.
"""

import asyncio
from collections.abc import Mapping, Sequence

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import PORT_ANNOTATION
from kvplan_operator.model.engine_pods import endpoint
from kvplan_operator.model.measured_facts import fresh, kept
from kvplan_operator.model.pods import Object, name_of
from kvplan_operator.model.router_sight import staying_routers
from kvplan_operator.model.snapshot import Fact, RouterState
from kvplan_operator.observe.http import PodHttp, Unreachable
from kvplan_operator.observe.profile import PrometheusSettings
from kvplan_solver.cacheroute.router_state import read_state
from kvplan_solver.errors import InvalidInput

ROUTER_PORT = 9090
"""Port of ``/state`` and ``/metrics``; see docs/contracts/router-state.md."""
RouterFacts = Mapping[str, Fact[RouterState]]


async def look_at_routers(
    fleet: ServingFleet,
    pods: Sequence[Object],
    http: PodHttp,
    settings: PrometheusSettings,
    now: float,
    before: RouterFacts,
) -> dict[str, Fact[RouterState]]:
    """A fact for every router of the fleet that stays."""
    addresses = {name_of(pod): endpoint(pod, ROUTER_PORT) for pod in staying_routers(fleet, pods)}
    urls = {url: url.rstrip("/") if settings.allows(url) else None for url in fleet.spec.routing.routers.urls}
    found = {**addresses, **urls}
    facts = await asyncio.gather(*(_look(who, at, http, now, before.get(who)) for who, at in found.items()))
    return dict(zip(found, facts, strict=True))


async def _look(
    who: str, address: str | None, http: PodHttp, now: float, before: Fact[RouterState] | None
) -> Fact[RouterState]:
    source = f"router {who}"
    if address is None:
        why = f"its address is unknown or not allowed: check {PORT_ANNOTATION}, or the operator's allowed URLs"
        return kept(before, source, now, why)
    try:
        return fresh(_state(await http.text(f"{address}/state")), source, now)
    except (Unreachable, InvalidInput) as error:
        return kept(before, source, now, str(error))


def _state(text: str) -> RouterState:
    """The checked document; a drain step acts on these numbers."""
    report = read_state(text)
    return RouterState(
        identity=report.identity,
        mode=report.mode.value,
        epoch=report.epoch,
        generation=report.generation,
        fingerprint=report.fingerprint,
        in_flight=report.in_flight,
        reserved=report.reserved,
        table_errors=sum(report.table_errors.values()),
    )
