"""A fleet in an API server that is a dictionary, looked at by the real looks: no control plane, no processes.

Objects have versions that grow with every write, and a write that carries an old one is refused. The solver runs in
this process, at once or when the test lets it. Nothing is watched: every look reads what is there.
"""

import asyncio
import copy
from collections.abc import Mapping
from typing import Any, cast

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.answers import Listing, Object
from kvplan_operator.kube.errors import AlreadyExists, Conflict, NotFound
from kvplan_operator.kube.recorder import Recorder
from kvplan_operator.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    REQUEST_CLASSES,
    ROUTING_PLANS,
    SERVING_FLEETS,
    Resource,
)
from kvplan_operator.logs import FleetLog
from kvplan_operator.metrics import Metrics, SolveOutcome
from kvplan_operator.model.pods import labels_of
from kvplan_operator.model.problem import PlanningInputs
from kvplan_operator.model.snapshot import ClusterView
from kvplan_operator.observe.measure import Sources
from kvplan_operator.observe.profile import PrometheusSettings
from kvplan_operator.plan.planner import make_plan, solver_options
from kvplan_operator.reconcile.fleet_task import Again
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.reconcile.services import Services
from kvplan_operator.reconcile.solver_child import Solved, Solvers
from kvplan_operator.reconcile.tick import FleetLooks
from kvplan_operator.reconcile.world import World
from kvplan_operator.reconcile.writing import Writer
from tests.planning import fleet, node, request_class
from tests.rollouts import pod_template

NOW = 1_800_000_000.0


class Store:
    """The API server.

    Attributes:
        objects: by plural, namespace and name.
        writes: verb, plural with subresource and name, in order.
        refuse_next: writes that are refused with a conflict, whatever they are.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.writes: list[tuple[str, str, str]] = []
        self.refuse_next = 0
        self._version = 0

    async def create(self, resource: Resource, document: Mapping[str, Any]) -> Object:
        key = self._key(resource, document)
        if key in self.objects:
            raise AlreadyExists(key[2])
        self._write("create", resource.plural, key[2])
        return self.put(resource, document)

    async def apply(
        self, resource: Resource, document: Mapping[str, Any], *, subresource: str | None = None, force: bool = False
    ) -> Object:
        assert force
        key = self._key(resource, document)
        stored = self.objects[key]
        if document["metadata"].get("resourceVersion") not in (None, stored["metadata"]["resourceVersion"]):
            raise Conflict(key[2])
        self._write("apply", "/".join(filter(None, (resource.plural, subresource))), key[2])
        fields = {name: document[name] for name in ("status", "data", "spec") if name in document}
        metadata = stored["metadata"] | {
            name: document["metadata"][name] for name in ("annotations", "labels") if name in document["metadata"]
        }
        return self.put(resource, {**stored, **fields, "metadata": metadata})

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        try:
            return copy.deepcopy(self.objects[resource.plural, namespace, name])
        except KeyError:
            raise NotFound(name) from None

    async def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return copy.deepcopy(self.objects.get((resource.plural, namespace, name)))

    async def list(self, resource: Resource, _namespace: str, **_: Any) -> Listing:
        return Listing(self.of(resource), "1")

    async def delete(self, resource: Resource, namespace: str, name: str, **_: Any) -> None:
        self._write("delete", resource.plural, name)
        self.objects.pop((resource.plural, namespace, name), None)

    def put(self, resource: Resource, document: Mapping[str, Any]) -> Object:
        """Store an object as a person or the server itself would."""
        self._version += 1
        key = self._key(resource, document)
        before = self.objects.get(key, {"metadata": {}})["metadata"]
        metadata = {
            "namespace": key[1], "uid": f"uid-{self._version}", "creationTimestamp": "2027-01-15T08:00:00Z",
            "generation": 1, **before, **document["metadata"], "resourceVersion": str(self._version),
        }  # fmt: skip
        self.objects[key] = {**document, "metadata": metadata}
        return copy.deepcopy(self.objects[key])

    def of(self, resource: Resource) -> tuple[Object, ...]:
        found = (item for (plural, _, _), item in self.objects.items() if plural == resource.plural)
        return tuple(copy.deepcopy(item) for item in found)

    def _write(self, verb: str, what: str, name: str) -> None:
        if self.refuse_next:
            self.refuse_next -= 1
            raise Conflict(name)
        self.writes.append((verb, what, name))

    def _key(self, resource: Resource, document: Mapping[str, Any]) -> tuple[str, str, str]:
        return resource.plural, document["metadata"].get("namespace", "default"), document["metadata"]["name"]


class _Seen:
    """The world as a look reads it."""

    def __init__(self, store: Store) -> None:
        self.store, self.named = store, self
        self.nodes = (node("a", 4), node("b", 4))

    def forget(self, namespace: str) -> None:
        """There is no cache."""

    def fleet(self, key: tuple[str, str]) -> ServingFleet | None:
        found = self.store.objects.get((SERVING_FLEETS.plural, *key))
        return None if found is None else ServingFleet.model_validate(copy.deepcopy(found))

    def classes_of(self, _: ServingFleet) -> tuple[RequestClass, ...]:
        return tuple(RequestClass.model_validate(item) for item in self.store.of(REQUEST_CLASSES))

    def plans_of(self, _: ServingFleet) -> tuple[RoutingPlan, ...]:
        return tuple(RoutingPlan.model_validate(item) for item in self.store.of(ROUTING_PLANS))

    def pods_and_nodes(self) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
        return (), self.nodes

    def other_sets(self, _: ServingFleet) -> tuple[Object, ...]:
        return ()

    def unreadable(self, _: tuple[str, str]) -> None:
        """Every fleet parses."""

    async def view(self, _fleet: ServingFleet, _classes: tuple[RequestClass, ...]) -> ClusterView:
        config_maps = {item["metadata"]["name"]: item for item in self.store.of(CONFIG_MAPS)}
        own = tuple(item for item in self.store.of(DEPLOYMENTS) if FLEET_LABEL in labels_of(item))
        return ClusterView(nodes=self.nodes, deployments=own, template=pod_template(), config_maps=config_maps)


class Solver:
    """Solves in this process, once it may.

    Attributes:
        may: set when solves may end.
        asked: inputs of every solve, warm starts beside them.
        running: the plan in force at each.
        cancelled: solves that were ended.
    """

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.asked: list[tuple[PlanningInputs, RoutingPlan | None]] = []
        self.running: list[RoutingPlan | None] = []
        self.cancelled = 0

    async def solve(
        self,
        inputs: PlanningInputs,
        limit_seconds: float,
        warm: RoutingPlan | None = None,
        running: RoutingPlan | None = None,
    ) -> Solved:
        self.asked.append((inputs, warm))
        self.running.append(running)
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        plan = make_plan(inputs.problem(), solver_options(inputs.fleet), running).plan
        return Solved(SolveOutcome.SOLVED, plan, seconds=limit_seconds / 10)


class Lab:
    """One fleet under observation; use inside a loop."""

    def __init__(self, **spec: Any) -> None:
        self.store, self.solver, self.now = Store(), Solver(), NOW
        of_fleet = fleet(engine={"templateRef": {"name": "engines"}, "version": "0.32.0"}, **spec)
        self._apply(SERVING_FLEETS, of_fleet)
        for name in ("chat", "code"):
            self._apply(REQUEST_CLASSES, request_class(name))
        self.seen = _Seen(self.store)
        self.metrics = Metrics()
        self.restart()

    def restart(self) -> None:
        """A new process: nothing is remembered."""
        client = cast(Any, self.store)
        services = Services(
            client=client,
            world=cast(World, self.seen),
            sources=Sources(PrometheusSettings()),
            solvers=cast(Solvers, self.solver),
            writer=Writer(client, Recorder(client, "lab"), self.metrics),
            metrics=self.metrics,
            clock=lambda: self.now,
        )
        self.memory = Memory(FleetLog("default/demo"))
        self.looks = FleetLooks(("default", "demo"), services, self.memory, lambda: None, lambda: None)

    async def look(self, times: int = 1) -> Again:
        """Look so many times, a second apart; what runs beside a look may go on in between."""
        again = Again()
        for _ in range(times):
            again = await self.looks.tick()
            self.now += 1.0
            for _ in range(8):
                await asyncio.sleep(0)
        return again

    @property
    def fleet(self) -> Object:
        """The fleet as stored."""
        return self.store.objects[SERVING_FLEETS.plural, "default", "demo"]

    def change(self, **spec: Any) -> None:
        """Change the fleet's spec as a person would."""
        item = copy.deepcopy(self.fleet)
        item["metadata"]["generation"] += 1
        self.store.put(SERVING_FLEETS, {**item, "spec": {**item["spec"], **spec}})

    def accept(self, digest: str) -> None:
        """Accept a plan."""
        self.change(planPolicy={"mode": "Approve"}, acceptedPlan={"digest": digest})

    @property
    def candidate(self) -> str:
        """Digest of the plan that waits."""
        return str(self.fleet["status"]["candidatePlan"]["digest"])

    def condition(self, type_: str) -> tuple[str, str]:
        """Status and reason of a condition of the fleet."""
        return next((c["status"], c["reason"]) for c in self.fleet["status"]["conditions"] if c["type"] == type_)

    def _apply(self, resource: Resource, item: ServingFleet | RequestClass) -> None:
        """As a person applies it: without a status."""
        self.store.put(resource, {name: part for name, part in item.to_wire().items() if name != "status"})
