"""Checks of one fleet: its conditions, measurements, engines, routers, secret, and what gets in the way of a rollout.

Input: a frozen ``FleetFacts``. Outputs: findings. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kvplan_cli.cluster.reading import FleetView
from kvplan_cli.doctor.engines import engine_checks
from kvplan_cli.doctor.findings import Finding, Level, Unknown, not_seen
from kvplan_cli.doctor.obstacles import obstacles
from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import RoutingMode
from kvplan_operator.model.pods import Object
from kvplan_operator.route.published import Published
from kvplan_solver.cacheroute.keys import fingerprint, weak_secret
from kvplan_solver.cacheroute.router_state import RouterReport


@dataclass(frozen=True, eq=False)
class FleetFacts:
    """What was seen of a fleet.

    Attributes:
        view: the fleet with its classes and plans.
        engines: Deployments that run its engines.
        versions: by Deployment: the vLLM version that one of its pods says; absent where none runs.
        index: the published table; None where there is none.
        routers: what each live router says.
        budgets: PodDisruptionBudgets of the namespace.
        autoscalers: HorizontalPodAutoscalers of the namespace.
        prometheus: what the fleet's Prometheus answered, in words; None where its address is not visible from here.
    """

    view: FleetView
    engines: tuple[Object, ...] = ()
    versions: Mapping[str, str | Unknown] = field(default_factory=dict)
    index: Published | Unknown | None = None
    routers: Mapping[str, RouterReport | Unknown] = field(default_factory=dict)
    budgets: tuple[Object, ...] | Unknown = ()
    autoscalers: tuple[Object, ...] | Unknown = ()
    prometheus: str | Unknown | None = None


def fleet_checks(facts: FleetFacts) -> Iterator[Finding]:
    """Everything about one fleet."""
    about = f"{facts.view.fleet.metadata.namespace}/{facts.view.name}"
    yield _state(facts.view.fleet, about)
    yield from _measurements(facts, about)
    yield from engine_checks(facts.view, facts.engines, facts.versions)
    yield from _routers(facts, about)
    yield from _secret(facts, about)
    yield from obstacles(facts.engines, facts.budgets, facts.autoscalers, about)


def _state(fleet: ServingFleet, about: str) -> Finding:
    """Ready, or what its conditions say instead."""
    conditions = {condition.type: condition for condition in fleet.status.conditions}
    ready, stalled = conditions.get(ConditionType.READY), conditions.get(ConditionType.STALLED)
    if ready is None:
        return Finding(Level.FAIL, "fleet", about, "no operator has looked at it", "see the checks of the operator")
    if stalled is not None and stalled.status is ConditionStatus.TRUE:
        return Finding(Level.FAIL, "fleet", about, f"stalled, {stalled.reason}", stalled.message)
    if ready.status is not ConditionStatus.TRUE:
        return Finding(Level.WARN, "fleet", about, f"not ready, {ready.reason}", ready.message)
    return Finding(Level.OK, "fleet", about, f"ready, {ready.reason}")


def _measurements(facts: FleetFacts, about: str) -> Iterator[Finding]:
    if isinstance(facts.prometheus, Unknown):
        remedy = "check the address in the operator's settings, and that it can be reached"
        yield Finding(Level.WARN, "Prometheus", about, f"no answer: {facts.prometheus.why}", remedy)
    elif facts.prometheus is not None:
        yield Finding(Level.OK, "Prometheus", about, facts.prometheus)
    conditions = {condition.type: condition for condition in facts.view.fleet.status.conditions}
    fresh = conditions.get(ConditionType.METRICS_FRESH)
    if fresh is not None:
        holds = fresh.status is ConditionStatus.TRUE
        level, remedy = (Level.OK, "") if holds else (Level.WARN, fresh.message)
        yield Finding(level, "measurements", about, str(fresh.reason), remedy)


def _routers(facts: FleetFacts, about: str) -> Iterator[Finding]:
    if facts.view.fleet.spec.routing.mode is RoutingMode.OFF:
        return
    if isinstance(facts.index, Unknown):
        yield not_seen("table", about, facts.index)
    elif facts.index is None:
        yield Finding(Level.WARN, "table", about, "none is published", "see the checks of the operator and the fleet")
    else:
        yield _table(facts.index, about)
    if not facts.routers:
        remedy = "start routers (manifests/router): without them nothing is measured and requests find no group"
        yield Finding(Level.WARN, "router", about, "no live router", remedy)
    order = facts.index.order if isinstance(facts.index, Published) else None
    for name, said in sorted(facts.routers.items()):
        yield _router(name, said, order)


def _table(index: Published, about: str) -> Finding:
    if index.fault:
        return Finding(Level.FAIL, "table", about, f"it was altered: {index.fault}", "the operator writes it again")
    return Finding(Level.OK, "table", about, f"generation {index.generation} is published")


def _router(name: str, said: RouterReport | Unknown, order: tuple[int, int] | None) -> Finding:
    """One router, held against the index in force."""
    if isinstance(said, Unknown):
        return not_seen(
            "router", name, said, "ask for permission to get pods/proxy, or look at GET /state on port 9090"
        )
    refused = ", ".join(f"{count} {reason}" for reason, count in sorted(said.table_errors.items()) if count)
    if refused:
        return Finding(Level.WARN, "router", name, f"it refused tables ({refused})", "see its log for the reason")
    if order is not None and (said.epoch, said.generation) < order:
        what = f"it has generation {said.generation}, {order[1]} is published"
        return Finding(Level.WARN, "router", name, what, "it catches up within seconds; if not, see its log and watch")
    return Finding(Level.OK, "router", name, f"generation {said.generation}, mode {said.mode.value}")


def _secret(facts: FleetFacts, about: str) -> Iterator[Finding]:
    """Whether keys are hashed with a secret, by the fingerprint that index and routers name."""
    index, uid = facts.index, facts.view.fleet.metadata.uid
    if not isinstance(index, Published) or index.document is None or uid is None:
        return
    if index.document["hash"]["fingerprint"] == fingerprint(weak_secret(uid)):
        remedy = "give the routers a secret: kvplan init --secret prints one"
        yield Finding(
            Level.WARN, "key secret", about, "keys are hashed with the fleet's uid, which is no secret", remedy
        )
    else:
        yield Finding(Level.OK, "key secret", about, "keys are hashed with a secret")
