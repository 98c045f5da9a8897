"""ServingFleets, RequestClasses and RoutingPlans, followed by watches of our own, which compare lists after every gap.

Inputs: a client, the namespaces looked after, somebody to tell. Outputs: raw objects by namespace and name, and calls
that say what was seen and what went. kopf's indexes would keep an object whose deletion fell into a gap of its watch,
so kopf only wakes (``handlers``). An object that was deleted and made again while nobody looked counts as both.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.reflector import Key, Reflector
from kvplan_operator.kube.resources import REQUEST_CLASSES, ROUTING_PLANS, SERVING_FLEETS, Resource
from kvplan_operator.model.pods import part
from kvplan_operator.reconcile.projections import without_managed_fields


@dataclass(frozen=True)
class OurObjects:
    """Raw objects of our own kinds, by namespace and name; live views."""

    fleets: Callable[[], Mapping[Key, Object]]
    classes: Callable[[], Mapping[Key, Object]]
    plans: Callable[[], Mapping[Key, Object]]


class Told(Protocol):
    """Who is told of changes."""

    def fleet_changed(self, key: Key, *, gone: bool) -> None:
        """A ServingFleet was seen, changed or went."""

    def class_changed(self, key: Key, *, gone: bool) -> None:
        """A RequestClass was seen, changed or went."""

    def plan_changed(self, key: Key, fleet: str | None, *, gone: bool) -> None:
        """A RoutingPlan was seen, changed or went."""


class OurKinds:
    """The watches of our own kinds.

    Attributes:
        objects: what they have.
        reflectors: to be run.
    """

    def __init__(self, client: Client, namespaces: tuple[str, ...], told: Told) -> None:
        """Prepare; nothing is asked before the reflectors run.

        Args:
            client: to read with.
            namespaces: looked after; none means all.
            told: of every change.
        """
        places: tuple[str | None, ...] = namespaces or (None,)

        def follow(resource: Resource, tell: Callable[[Key, Object, bool], None]) -> tuple[Reflector[Object], ...]:
            def changed(key: Key, old: Object | None, new: Object | None) -> None:
                for item, gone in _told_of(old, new):
                    tell(key, item, gone)

            return tuple(
                Reflector(client, resource, namespace=place, project=without_managed_fields, on_change=changed)
                for place in places
            )

        fleets = follow(SERVING_FLEETS, lambda key, _, gone: told.fleet_changed(key, gone=gone))
        classes = follow(REQUEST_CLASSES, lambda key, _, gone: told.class_changed(key, gone=gone))
        plans = follow(ROUTING_PLANS, lambda key, item, gone: told.plan_changed(key, _fleet_of(item), gone=gone))
        self.reflectors = (*fleets, *classes, *plans)
        self.objects = OurObjects(lambda: _all(fleets), lambda: _all(classes), lambda: _all(plans))


def _all(reflectors: tuple[Reflector[Object], ...]) -> Mapping[Key, Object]:
    if len(reflectors) == 1:
        return reflectors[0].objects
    return {key: item for reflector in reflectors for key, item in reflector.objects.items()}


def _told_of(old: Object | None, new: Object | None) -> Iterator[tuple[Object, bool]]:
    """Objects to tell of, and whether each is gone."""
    if old is not None and (new is None or _uid(old) != _uid(new)):
        yield old, True
    if new is not None:
        yield new, False


def _uid(item: Object) -> object:
    return part(item, "metadata").get("uid")


def _fleet_of(plan: Object) -> str | None:
    return part(plan, "spec").get("fleetName")
