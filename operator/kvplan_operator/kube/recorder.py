"""Events (events.k8s.io/v1) about what changed, for `kubectl describe` and `kubectl events`.

Inputs: transitions, told by ``record``, which never waits and never fails. Outputs: one Event per object, reason and
note; a repetition raises the count of its series. Bounded three ways: a queue that drops the newest, a number of
series remembered, and a pause between two writes of one series. Must not be told of states, only of changes.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kvplan_operator.api.labels import GROUP
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.clocks import Clock, boot_clock, micro_time, wall_clock
from kvplan_operator.kube.errors import KubeError, NotFound
from kvplan_operator.kube.resources import EVENTS

CONTROLLER: Final = f"{GROUP}/operator"
_LONGEST_NOTE = 1024
_LONGEST_NAME = 200
_WAITING = 1000
_REMEMBERED = 2000
_PAUSE_SECONDS = 30.0
"""Between two writes of one series: flapping fills no etcd."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Happening:
    """One thing that happened to one object.

    Attributes:
        regarding: apiVersion, kind, namespace, name and uid of the object.
        reason: one CamelCase word, as in conditions.
        action: what was done or decided about it, one CamelCase word.
        note: a sentence for people.
        warning: whether somebody should look.
    """

    regarding: tuple[tuple[str, str], ...]
    reason: str
    action: str
    note: str
    warning: bool

    @property
    def place(self) -> dict[str, str]:
        """The object as Events refer to it."""
        return dict(self.regarding)

    def name(self, identity: str) -> str:
        """Name of the Event, one per process: a process knows the counts of its own only."""
        digest = hashlib.sha256(repr((identity, self)).encode()).hexdigest()[:16]
        return f"{self.place['name'][:_LONGEST_NAME].rstrip('-.')}.{digest}"


@dataclass
class _Series:
    """An Event that was written: how often it happened, and until when the next write waits."""

    count: int
    quiet_until: float


class Recorder:
    """Writes Events in the background.

    Attributes:
        dropped: happenings that were not written, because too many waited or the API server refused.
    """

    def __init__(
        self,
        client: Client,
        identity: str,
        clock: Clock = boot_clock,
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        """Prepare; nothing is written before ``run``.

        Args:
            client: fenced, so that the leader alone writes.
            identity: of this process.
            clock: for pauses.
            wall: for people.
        """
        self._client, self._identity, self._clock, self._wall = client, identity, clock, wall
        self._waiting: asyncio.Queue[Happening] = asyncio.Queue(_WAITING)
        self._series: OrderedDict[Happening, _Series] = OrderedDict()
        self.dropped = 0

    def record(
        self, regarding: Mapping[str, Any], reason: str, action: str, note: str, *, warning: bool = False
    ) -> None:
        """Tell of a transition of an object, given whole or with apiVersion, kind and metadata."""
        happening = Happening(_reference(regarding), reason, action, note[:_LONGEST_NOTE], warning)
        try:
            self._waiting.put_nowait(happening)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write what is recorded until cancelled or until the leadership is lost.

        Raises:
            LeadershipLost: by the fence of the client.
        """
        while True:
            happening = await self._waiting.get()
            try:
                await self._write(happening)
            finally:
                self._waiting.task_done()

    async def flushed(self) -> None:
        """Wait until all that was recorded is written or dropped; needs ``run``."""
        await self._waiting.join()

    async def _write(self, happening: Happening) -> None:
        try:
            await self._count(happening)
        except KubeError as error:
            self.dropped += 1
            _LOG.warning("an Event was not written: %s", error)

    async def _count(self, happening: Happening) -> None:
        series = self._series.get(happening)
        if series is None:
            await self._begin(happening)
            return
        series.count += 1
        self._series.move_to_end(happening)
        if self._clock() >= series.quiet_until:
            series.quiet_until = self._clock() + _PAUSE_SECONDS
            await self._repeat(happening, series)

    async def _begin(self, happening: Happening) -> None:
        await self._client.create(EVENTS, self._event(happening))
        self._series[happening] = _Series(1, float("-inf"))
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    async def _repeat(self, happening: Happening, series: _Series) -> None:
        try:
            await self._client.merge_patch(EVENTS, self._repetition(happening, series))
        except NotFound:
            # Events live for an hour: what happens again later is told as new.
            del self._series[happening]
            await self._begin(happening)

    def _event(self, happening: Happening) -> Object:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": self._metadata(happening),
            "eventTime": self._stamp(),
            "type": "Warning" if happening.warning else "Normal",
            "reason": happening.reason,
            "action": happening.action,
            "note": happening.note,
            "regarding": happening.place,
            "reportingController": CONTROLLER,
            "reportingInstance": self._identity[:128],
        }

    def _repetition(self, happening: Happening, series: _Series) -> Object:
        told = {"count": series.count, "lastObservedTime": self._stamp()}
        return {"metadata": self._metadata(happening), "series": told}

    def _metadata(self, happening: Happening) -> Object:
        # Events about objects without a namespace live in this one.
        namespace = happening.place.get("namespace", "default")
        return {"namespace": namespace, "name": happening.name(self._identity)}

    def _stamp(self) -> str:
        return micro_time(self._wall())


def _reference(item: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    metadata = item["metadata"]
    typed = {name: item[name] for name in ("apiVersion", "kind")}
    named = {name: metadata[name] for name in ("namespace", "name", "uid") if metadata.get(name)}
    return tuple((typed | named).items())
