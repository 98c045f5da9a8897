"""The cluster as the watches have it, cut into one frozen view per fleet.

Inputs: a client, the raw fleets, classes and plans, watches of our own for everything around them. Outputs: typed
objects and a ``ClusterView``. An object that does not parse stops only what it is about. Each watch of Deployments,
ConfigMaps and LeaderWorkerSets has a label selector; adopted objects carry no label of ours and are read by name, with
a short cache. Must not write.
"""

from collections.abc import Callable, Iterable, Mapping

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
from kvplan_operator.model.pods import labels_of, name_of, part
from kvplan_operator.model.problem import belongs
from kvplan_operator.model.snapshot import ClusterView
from kvplan_operator.reconcile.named_objects import NamedObjects
from kvplan_operator.reconcile.our_kinds import OurObjects
from kvplan_operator.reconcile.parsed import Parsed, T
from kvplan_operator.reconcile.projections import holds_devices, project_node, without_managed_fields
from kvplan_operator.reconcile.relevance import relevant
from kvplan_operator.reconcile.watches import Watches

Wake = Callable[[str | None, str | None], None]
"""Called with namespace and fleet that may have changed; None for all."""


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
        self._client, self._wake, self._parsed = client, wake, Parsed()
        self._places: tuple[str | None, ...] = namespaces or (None,)
        self._nodes = Reflector(client, NODES, project=project_node, on_change=lambda *_: wake(None, None))
        self._pods = Reflector(client, PODS, project=project_pod, on_change=self._pod_changed)
        self._deployments = self._follow(DEPLOYMENTS, FLEET_LABEL)
        self._config_maps = self._follow(CONFIG_MAPS, FLEET_LABEL)
        self._templates = self._follow(POD_TEMPLATES)
        self._autoscalers = self._follow(HORIZONTAL_POD_AUTOSCALERS)
        self._worker_sets: tuple[Reflector[Object], ...] = ()
        self._watches = Watches()

    async def start(self, *, worker_sets_served: bool) -> None:
        """Follow everything; returns once every first list is in."""
        if worker_sets_served:
            self._worker_sets = self._follow(LEADER_WORKER_SETS, FLEET_LABEL)
        await self._watches.start(self._all())

    async def stop(self) -> None:
        """End every watch."""
        await self._watches.stop()

    @property
    def broken(self) -> bool:
        """Whether a watch ended by itself, so that what is known grows old."""
        return self._watches.broken

    def fleet(self, key: Key) -> ServingFleet | None:
        """A fleet; None where there is none, it is being deleted, or it does not parse."""
        raw = self._standing(key)
        return None if raw is None else self._parsed.get(ServingFleet, key, raw)

    def unreadable(self, key: Key) -> tuple[Object, str] | None:
        """A fleet that does not parse, and why; None where it does, or there is none."""
        raw = self._standing(key)
        fault = "" if raw is None else self._parsed.fault(ServingFleet, key, raw)
        return (raw, fault) if raw is not None and fault else None

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

    def other_sets(self, fleet: ServingFleet) -> tuple[Object, ...]:
        """Engine sets of all other fleets with groups that are not Ready: they may have been promised GPUs."""
        place = (fleet.metadata.namespace, fleet.metadata.name)
        followed = _items((*self._deployments, *self._worker_sets))
        return tuple(s for key, s in followed if (key[0], labels_of(s).get(FLEET_LABEL)) != place and _comes_up(s))

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
        nodes, pods = relevant(fleet, self._nodes.objects.values(), self._pods.objects)
        return ClusterView(
            nodes=nodes,
            pods=pods,
            deployments=(*own, *(item for item in _present(adopted) if name_of(item) not in known)),
            worker_sets=_labelled(self._worker_sets, namespace, name),
            other_sets=self.other_sets(fleet),
            autoscalers=tuple(item for key, item in _items(self._autoscalers) if key[0] == namespace),
            template=await self._template(fleet),
            config_maps={name_of(item): item for item in config_maps},
            worker_sets_served=bool(self._worker_sets),
            adopted_elsewhere=self._adopted_before(fleet),
        )

    def _adopted_before(self, fleet: ServingFleet) -> dict[str, str]:
        """Deployments that fleets earlier by name adopt, with the first of them: a Deployment has one master."""
        earlier = [f for f in self.fleets_of(fleet.metadata.namespace) if f.metadata.name < fleet.metadata.name]
        return {k.deployment: f.metadata.name for f in reversed(earlier) for k in f.spec.configurations if k.deployment}

    async def _template(self, fleet: ServingFleet) -> Object | None:
        wanted, namespace = fleet.spec.engine.template_ref, fleet.metadata.namespace
        if wanted is None:
            return None
        if wanted.kind is TemplateKind.DEPLOYMENT:
            return await self.named.get(DEPLOYMENTS, namespace, wanted.name)
        return dict(_items(self._templates)).get((namespace, wanted.name))

    def _standing(self, key: Key) -> Object | None:
        """A raw fleet that is not being deleted."""
        raw = self.ours.fleets().get(key)
        return None if raw is None or raw["metadata"].get("deletionTimestamp") else raw

    def _typed(self, model: type[T], raw: Mapping[Key, Object], namespace: str | None) -> tuple[T, ...]:
        chosen = sorted(key for key in raw if namespace in (None, key[0]))
        found = (self._parsed.get(model, key, raw[key]) for key in chosen)
        return tuple(item for item in found if item is not None)

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


def _comes_up(item: Object) -> bool:
    """Whether a set has groups that were asked for and are not Ready."""
    return int(part(item, "spec").get("replicas", 1)) > int(part(item, "status").get("readyReplicas") or 0)


def _present(found: Iterable[Object | None]) -> list[Object]:
    return [item for item in found if item is not None]
