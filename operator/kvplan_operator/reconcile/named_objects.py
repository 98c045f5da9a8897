"""Objects that people own and fleets name: adopted Deployments, templates, ConfigMaps with lengths. Read by name.

Inputs: a client, a clock. Outputs: objects as they were when last read; None for one that is not there. What is known
of a namespace is dropped after a write of ours and whenever a pod there changes, which every change that matters brings
about; apart from that it lasts ``FRESH_SECONDS``, so that nothing is read at rest. Must not write.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.clocks import boot_clock
from kvplan_operator.kube.resources import Resource
from kvplan_operator.reconcile.projections import without_managed_fields

FRESH_SECONDS: Final = 300.0
"""How late a change may be seen that moves no pod, such as one of a ConfigMap with lengths."""


class NamedObjects:
    """A small cache in front of single reads."""

    def __init__(self, client: Client, clock: Callable[[], float] = boot_clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[tuple[Resource, str, str], tuple[float, Object | None]] = {}
        self._forgotten: Counter[str] = Counter()

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """An object as of a moment ago."""
        place = (resource, namespace, name)
        seen = self._known.get(place)
        if seen is None or self._clock() - seen[0] > FRESH_SECONDS:
            forgotten = self._forgotten[namespace]
            found = await self._client.find(resource, namespace, name)
            seen = (self._clock(), None if found is None else without_managed_fields(found))
            if forgotten == self._forgotten[namespace]:  # what was read before a change is not kept after it
                self._known[place] = seen
        return seen[1]

    def forget(self, namespace: str) -> None:
        """Read everything of a namespace anew."""
        self._forgotten[namespace] += 1
        for place in [place for place in self._known if place[1] == namespace]:
            del self._known[place]
