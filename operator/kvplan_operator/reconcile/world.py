"""The cluster as the watches have it, cut into one frozen view per fleet.

Inputs: a client, the raw fleets, classes and plans that kopf's indexes hold, watches of our own for everything around
them. Outputs: typed objects and a ``ClusterView``. Each watch of Deployments, ConfigMaps and LeaderWorkerSets has a
label selector; adopted objects carry no label of ours and are read by name, with a short cache. Must not write.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import TemplateKind
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.reflector import Key, Reflector
from kvplan_operator.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    NODES,
    POD_TEMPLATES,
    PODS,
    Resource,
)
from kvplan_operator.model.pods import labels_of, name_of, requested_gpus
from kvplan_operator.model.problem import belongs
from kvplan_operator.model.snapshot import ClusterView
from kvplan_operator.reconcile.named_objects import NamedObjects
from kvplan_operator.reconcile.projections import holds_devices, project_node, without_managed_fields

T = TypeVar("T", ServingFleet, RequestClass, RoutingPlan)
Wake = Callable[[str | None, str | None], None]
"""Called with namespace and fleet that may have changed; None for all."""


@dataclass(frozen=True)
class OurObjects:
    """Raw objects of our own kinds, by namespace and name; live views of kopf's indexes."""

    fleets: Callable[[], Mapping[Key, Object]]
    classes: Callable[[], Mapping[Key, Object]]
    plans: Callable[[], Mapping[Key, Object]]


@dataclass
class _Parsed:
    """Objects parsed once per version; only those that still exist are kept."""

    known: dict[tuple[str, Key], tuple[str, Any]] = field(default_factory=dict)

    def get(self, model: type[T], key: Key, raw: Object) -> T:
        version, place = str(raw["metadata"].get("resourceVersion")), (model.__name__, key)
        found = self.known.get(place)
        if found is None or found[0] != version:
            self.known[place] = found = (version, model.model_validate(raw))
        parsed: T = found[1]
        return parsed

    def forget(self, model: type[T], key: Key) -> None:
        self.known.pop((model.__name__, key), None)


class World:
    """What the operator knows of the cluster.

    Attributes:
        ours: fleets, classes and plans.
        named: objects read by name.
    """

    def __init__(self, client: Client, namespaces: tuple[str, ...], ours: OurObjects, wake: Wake) -> None:
        """Prepare; nothing is asked before ``run``.

        Args:
            client: to read with.
            namespaces: looked after; none means all.
            ours: objects of our own kinds.
            wake: told which fleets may have changed.
        """
        self.ours, self.named = ours, NamedObjects(client)
        self._client, self._wake, self._parsed = client, wake, _Parsed()
        self._places: tuple[str | None, ...] = namespaces or (None,)
        self._nodes = Reflector(client, NODES, project=project_node, on_change=lambda *_: wake(None, None))
        self._pods = Reflector(client, PODS, project=project_pod, on_change=self._pod_changed)
        self._deployments = self._follow(DEPLOYMENTS, FLEET_LABEL)
        self._config_maps = self._follow(CONFIG_MAPS, FLEET_LABEL)
        self._templates = self._follow(POD_TEMPLATES)
        self._autoscalers = self._follow(HORIZONTAL_POD_AUTOSCALERS)
        self._worker_sets: tuple[Reflector[Object], ...] = ()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *, worker_sets_served: bool) -> None:
        """Follow everything; returns once every first list is in."""
        if worker_sets_served:
            self._worker_sets = self._follow(LEADER_WORKER_SETS, FLEET_LABEL)
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self._all()]
        await asyncio.gather(*(reflector.synced.wait() for reflector in self._all()))

    async def stop(self) -> None:
        """End every watch."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def fleet(self, key: Key) -> ServingFleet | None:
        """A fleet; None where there is none or it is being deleted."""
        raw = self.ours.fleets().get(key)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            return None
        return self._parsed.get(ServingFleet, key, raw)

    def fleets_of(self, namespace: str) -> tuple[ServingFleet, ...]:
        """Fleets of a namespace, by name."""
        found = (self.fleet(key) for key in sorted(self.ours.fleets()) if key[0] == namespace)
        return tuple(fleet for fleet in found if fleet is not None)

    def classes_in(self, namespace: str | None) -> tuple[RequestClass, ...]:
        """RequestClasses of a namespace (None for all), by name."""
        return self._typed(RequestClass, self.ours.classes(), namespace)

    def classes_of(self, fleet: ServingFleet) -> tuple[RequestClass, ...]:
        """RequestClasses of a fleet; of several fleets that select one, the first by name has it."""
        rivals = [f for f in self.fleets_of(fleet.metadata.namespace) if f.metadata.name < fleet.metadata.name]
        candidates = self.classes_in(fleet.metadata.namespace)
        return tuple(c for c in candidates if belongs(c, fleet) and not any(belongs(c, rival) for rival in rivals))

    def plans_of(self, fleet: ServingFleet) -> tuple[RoutingPlan, ...]:
        """RoutingPlans of a fleet, by name."""
        plans = self._typed(RoutingPlan, self.ours.plans(), fleet.metadata.namespace)
        return tuple(plan for plan in plans if plan.spec.fleet_name == fleet.metadata.name)

    def forget(self, key: Key) -> None:
        """Drop what is kept of a fleet that went."""
        self._parsed.forget(ServingFleet, key)
        self.named.forget(key[0])

    def forget_class(self, key: Key) -> None:
        """Drop what is kept of a class that went."""
        self._parsed.forget(RequestClass, key)

    def forget_plan(self, key: Key) -> None:
        """Drop what is kept of a plan that went."""
        self._parsed.forget(RoutingPlan, key)

    def pods_and_nodes(self) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
        """Every pod and every node as of this moment: the ledger is checked with it right before a write."""
        return tuple(self._pods.objects.values()), tuple(self._nodes.objects.values())

    async def view(self, fleet: ServingFleet, classes: Iterable[RequestClass]) -> ClusterView:
        """The objects that matter to one fleet."""
        namespace, name = fleet.metadata.namespace, fleet.metadata.name
        named = [k.deployment for k in fleet.spec.configurations if k.deployment]
        adopted = [await self.named.get(DEPLOYMENTS, namespace, deployment) for deployment in named]
        own = _labelled(self._deployments, namespace, name)
        known = {name_of(item) for item in own}
        referred = [c.spec.output_lengths.config_map_ref for c in classes]
        lengths = [await self.named.get(CONFIG_MAPS, namespace, ref.name) for ref in referred if ref is not None]
        config_maps = [*_labelled(self._config_maps, namespace, name), *_present(lengths)]
        return ClusterView(
            nodes=tuple(self._nodes.objects.values()),
            pods=tuple(self._relevant(fleet)),
            deployments=(*own, *(item for item in _present(adopted) if name_of(item) not in known)),
            worker_sets=_labelled(self._worker_sets, namespace, name),
            autoscalers=tuple(item for key, item in _items(self._autoscalers) if key[0] == namespace),
            template=await self._template(fleet),
            config_maps={name_of(item): item for item in config_maps},
            worker_sets_served=bool(self._worker_sets),
        )

    def _relevant(self, fleet: ServingFleet) -> Iterable[Object]:
        """Pods of the fleet's namespace, and all others that hold GPUs of its kind."""
        resource = fleet.spec.nodes.gpu_resource
        for key, pod in self._pods.objects.items():
            if key[0] == fleet.metadata.namespace or requested_gpus(pod, resource):
                yield pod

    async def _template(self, fleet: ServingFleet) -> Object | None:
        wanted, namespace = fleet.spec.engine.template_ref, fleet.metadata.namespace
        if wanted is None:
            return None
        if wanted.kind is TemplateKind.DEPLOYMENT:
            return await self.named.get(DEPLOYMENTS, namespace, wanted.name)
        return dict(_items(self._templates)).get((namespace, wanted.name))

    def _typed(self, model: type[T], raw: Mapping[Key, Object], namespace: str | None) -> tuple[T, ...]:
        chosen = sorted(key for key in raw if namespace in (None, key[0]))
        return tuple(self._parsed.get(model, key, raw[key]) for key in chosen)

    def _follow(self, resource: Resource, labels: str | None = None) -> tuple[Reflector[Object], ...]:
        return tuple(
            Reflector(
                self._client,
                resource,
                namespace=place,
                labels=labels,
                project=without_managed_fields,
                on_change=self._changed,
            )
            for place in self._places
        )

    def _all(self) -> tuple[Reflector[Object], ...]:
        by_place = (self._deployments, self._config_maps, self._templates, self._autoscalers, self._worker_sets)
        return (self._nodes, self._pods, *(reflector for group in by_place for reflector in group))

    def _changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        self._wake(key[0], labels_of(new or old or {}).get(FLEET_LABEL))

    def _pod_changed(self, key: Key, old: Object | None, new: Object | None) -> None:
        """A pod of a fleet is its own business; any other may hold GPUs that some fleet counts on."""
        self.named.forget(key[0])
        fleet = labels_of(new or old or {}).get(FLEET_LABEL)
        holds = any(holds_devices(item) for item in (old, new) if item is not None)
        self._wake(None if fleet is None and holds else key[0], fleet)


def _items(reflectors: Iterable[Reflector[Object]]) -> Iterable[tuple[Key, Object]]:
    for reflector in reflectors:
        yield from reflector.objects.items()


def _labelled(reflectors: Iterable[Reflector[Object]], namespace: str, fleet: str) -> tuple[Object, ...]:
    return tuple(
        item for key, item in _items(reflectors) if key[0] == namespace and labels_of(item).get(FLEET_LABEL) == fleet
    )


def _present(found: Iterable[Object | None]) -> list[Object]:
    return [item for item in found if item is not None]
