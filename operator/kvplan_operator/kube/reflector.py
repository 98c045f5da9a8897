"""A copy of a collection, kept by list and watch.

Inputs: a client, a ``Resource``, selectors, and a projection to what matters. Outputs: ``objects``, and a call for each
difference, missed events included: after any gap the list is read again and compared. ``run`` ends only when it is
cancelled; what fails meanwhile is in ``failure``. Must not write.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from kvplan_operator.kube.answers import Event, Object, whole
from kvplan_operator.kube.backoff import Backoff
from kvplan_operator.kube.client import SILENCE_SECONDS, WATCH_SECONDS, Client
from kvplan_operator.kube.clocks import Clock, boot_clock
from kvplan_operator.kube.errors import Expired, KubeError
from kvplan_operator.kube.resources import Resource

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty where the kind has none) and name."""
OnChange = Callable[[Key, T | None, T | None], None]
"""Called with the key, what was known and what is known now; must not raise."""

_LONG_SECONDS: Final = 5.0
"""A watch that was open for so long is followed by another at once, whatever ended it: of a quiet kind it may just have
been silent for too long."""
_BACKOFF = Backoff(first_seconds=0.5, most_seconds=30.0)
_LOG = logging.getLogger(__name__)


def _ignore(_key: Key, _old: Any, _new: Any) -> None:
    """For those who look at ``objects`` by themselves."""


class Reflector(Generic[T]):
    """The objects of one kind as last heard.

    Attributes:
        objects: what each was projected to, by namespace and name; a live view.
        synced: set once the first list is in.
        failure: what stands in the way now; None while all is well.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        project: Callable[[Object], T | None] = whole,  # type: ignore[assignment]
        on_change: OnChange[T] = _ignore,
        silence_seconds: float = SILENCE_SECONDS,
        clock: Clock = boot_clock,
        rng: Callable[[], float] = random.random,
    ) -> None:
        """Prepare; nothing is asked before ``run``.

        Args:
            client: to read with.
            resource: kind.
            namespace: None for all.
            labels: label selector.
            fields: field selector.
            project: what to keep of an object; None keeps nothing of it. Equal projections are no change.
            on_change: called for each difference.
            silence_seconds: after which a silent watch counts as dead.
            clock: tells how long a watch lasted.
            rng: for pauses, draws from [0, 1).
        """
        self._client, self._resource, self._namespace = client, resource, namespace
        self._labels, self._fields, self._silence_seconds = labels, fields, silence_seconds
        self._project, self._on_change = project, on_change
        self._clock, self._rng = clock, rng
        self._known: dict[Key, T] = {}
        self._version: str | None = None
        self.objects: Mapping[Key, T] = MappingProxyType(self._known)
        self.synced = asyncio.Event()
        self.failure: KubeError | None = None

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        failures = 0
        while True:
            failures = 0 if await self._follow() else failures + 1
            if failures:
                await asyncio.sleep(_BACKOFF.seconds(failures, self._rng))

    async def _follow(self) -> bool:
        """List if that is due, then watch until the watch ends; whether the watch told something or lasted."""
        told, opened = False, float("inf")
        try:
            version = self._version or await self._list()
            async with self._watch(version) as events:
                self._hear(version)
                opened = self._clock()
                async for event in events:
                    told = True
                    self._take(event)
        except Expired:
            _LOG.info("%s are listed again: version %s is forgotten", self._resource.title, self._version)
            self._version = None
        except KubeError as error:
            self.failure = error
            _LOG.log(logging.WARNING if opened == float("inf") else logging.INFO, "following: %s", error)
        return told or self._clock() - opened >= _LONG_SECONDS

    def _watch(self, version: str) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._client.watch(
            self._resource,
            self._namespace,
            resource_version=version,
            labels=self._labels,
            fields=self._fields,
            seconds=WATCH_SECONDS * (1.0 + self._rng()),  # so that many do not end together
            silence_seconds=self._silence_seconds,
        )

    async def _list(self) -> str:
        listing = await self._client.list(
            self._resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            project=lambda item: (_key(item), self._project(item)),
        )
        fresh: dict[Key, T | None] = dict(listing.items)
        for key in [key for key in self._known if key not in fresh]:
            self._store(key, None)
        for key, item in fresh.items():
            self._store(key, item)
        self._hear(listing.resource_version)
        self.synced.set()
        return listing.resource_version

    def _take(self, event: Event) -> None:
        self._hear(event.object["metadata"]["resourceVersion"])
        if event.type != "BOOKMARK":
            self._store(_key(event.object), None if event.type == "DELETED" else self._project(event.object))

    def _hear(self, version: str) -> None:
        self._version, self.failure = version, None

    def _store(self, key: Key, new: T | None) -> None:
        old = self._known.get(key)
        if new is None:
            self._known.pop(key, None)
        else:
            self._known[key] = new
        if old != new:
            self._on_change(key, old, new)


def _key(item: Object) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
