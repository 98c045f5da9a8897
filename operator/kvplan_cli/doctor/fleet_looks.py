"""What the doctor looks at around one fleet: engines, routers, table, budgets, autoscalers, Prometheus.

Inputs: a session, the fleet, the operator's settings where they are visible. Output: a frozen ``FleetFacts``.
"""

import asyncio
from collections.abc import Mapping, Sequence

from kvplan_cli.cluster.containers import is_pod_of
from kvplan_cli.cluster.kinds import POD_DISRUPTION_BUDGETS
from kvplan_cli.cluster.reading import FleetView, Object
from kvplan_cli.cluster.session import Session
from kvplan_cli.doctor.attempts import attempt
from kvplan_cli.doctor.findings import Unknown
from kvplan_cli.doctor.fleets import FleetFacts
from kvplan_cli.doctor.proxies import engine_version, prometheus_answer, router_state
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from kvplan_operator.model.engine_pods import engine_pods
from kvplan_operator.model.pods import labels_of, name_of
from kvplan_operator.model.router_sight import live_routers
from kvplan_operator.route.published import Published, published
from kvplan_operator.settings import Settings
from kvplan_solver.cacheroute.router_state import RouterReport


async def fleet_facts(session: Session, view: FleetView, settings: Settings | None) -> FleetFacts:
    """Look at everything at once."""
    pods, engines, index, budgets, autoscalers, prometheus = await asyncio.gather(
        attempt(_items(session, PODS)),
        attempt(_engines(session, view)),
        attempt(_index(session, view)),
        attempt(_items(session, POD_DISRUPTION_BUDGETS)),
        attempt(_items(session, HORIZONTAL_POD_AUTOSCALERS)),
        attempt(_prometheus(session, view, settings)),
    )
    seen = () if isinstance(pods, Unknown) else pods
    found = () if isinstance(engines, Unknown) else engines
    routers, versions = await asyncio.gather(_routers(session, view, seen), _versions(session, view, found, seen))
    return FleetFacts(view, found, versions, index, routers, budgets, autoscalers, prometheus)


async def _items(session: Session, resource: Resource, labels: str | None = None) -> tuple[Object, ...]:
    return (await session.client.list(resource, session.namespace, labels=labels)).items


async def _engines(session: Session, view: FleetView) -> tuple[Object, ...]:
    """Created Deployments by label, adopted ones by name; the labels of people do not count twice."""
    adopted = {c.deployment for c in view.fleet.spec.configurations if c.deployment}
    all_of_them = await _items(session, DEPLOYMENTS)
    own = (d for d in all_of_them if labels_of(d).get(FLEET_LABEL) == view.name or name_of(d) in adopted)
    return tuple(sorted(own, key=name_of))


async def _index(session: Session, view: FleetView) -> Published | None:
    found = await _items(session, CONFIG_MAPS, f"{FLEET_LABEL}={view.name}")
    return published({name_of(item): item for item in found}, view.name)


async def _routers(session: Session, view: FleetView, pods: Sequence[Object]) -> Mapping[str, RouterReport | Unknown]:
    names = [name_of(pod) for pod in live_routers(view.fleet, pods)]
    said = await asyncio.gather(*(attempt(router_state(session, name)) for name in names))
    return dict(zip(names, said, strict=True))


async def _versions(
    session: Session, view: FleetView, engines: Sequence[Object], pods: Sequence[Object]
) -> Mapping[str, str | Unknown]:
    """The version that one running pod of each Deployment says."""
    running = [pod for _, pod in engine_pods(view.fleet, pods)]
    asked = {name: name_of(pod) for name in map(name_of, engines) for pod in running if is_pod_of(pod, name)}
    said = await asyncio.gather(*(attempt(engine_version(session, pod)) for pod in asked.values()))
    return dict(zip(asked, said, strict=True))


async def _prometheus(session: Session, view: FleetView, settings: Settings | None) -> str | None:
    """What the Prometheus that the fleet names answers; None where its address is not visible."""
    wanted = view.fleet.spec.prometheus
    if wanted.url is not None:
        return await prometheus_answer(session, wanted.url)
    profile = settings.prometheus.profiles.get(wanted.profile or "") if settings is not None else None
    return await prometheus_answer(session, profile.url) if profile is not None else None
