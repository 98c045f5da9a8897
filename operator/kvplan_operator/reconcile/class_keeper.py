"""Tells RequestClasses that no fleet selects so; those of a fleet are that fleet's business.

Inputs: the world. Output: statuses, where they differ. One look covers all of them.
"""

from collections.abc import Callable

from kvplan_operator.kube.errors import Conflict, Gone, NotFound
from kvplan_operator.model.problem import belongs
from kvplan_operator.reconcile.fleet_task import Again
from kvplan_operator.reconcile.world import World
from kvplan_operator.reconcile.writing import Writer
from kvplan_operator.status.request_class import ClassView, class_status


class ClassKeeper:
    """The looks at classes without a fleet."""

    def __init__(self, world: World, writer: Writer, clock: Callable[[], float]) -> None:
        self._world, self._writer, self._clock = world, writer, clock

    async def tick(self) -> Again:
        """One look; what changed in between is seen by the next."""
        for request_class in self._world.classes_in(None):
            fleets = self._world.fleets_of(request_class.metadata.namespace)
            if any(belongs(request_class, fleet) for fleet in fleets):
                continue
            status = class_status(ClassView(request_class, self._clock(), None))
            try:
                await self._writer.status(request_class, status)
            except (Conflict, Gone, NotFound):
                continue
        return Again()
