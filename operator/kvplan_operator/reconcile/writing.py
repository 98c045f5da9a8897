"""Statuses written to the cluster, only where their rendering differs, and the events that tell of it.

Inputs: an object with its stored status and a fresh rendering. Outputs: a server-side apply on ``/status`` that carries
the version which was looked at, so that a late write is refused; one Event per condition that turned. Must not decide.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import API_VERSION
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.recorder import Recorder
from kvplan_operator.kube.resources import REQUEST_CLASSES, ROUTING_PLANS, SERVING_FLEETS, Resource
from kvplan_operator.metrics import Metrics
from kvplan_operator.model.pods import part

Ours = ServingFleet | RequestClass | RoutingPlan
Wire = Mapping[str, Any]

_RESOURCES: Mapping[str, Resource] = {r.kind: r for r in (SERVING_FLEETS, REQUEST_CLASSES, ROUTING_PLANS)}
_TOLD = frozenset({
    ConditionType.READY, ConditionType.STALLED, ConditionType.PLAN_ACCEPTED, ConditionType.ROLLOUT_COMPLETE,
    ConditionType.METRICS_FRESH, ConditionType.CONTENDED, ConditionType.APPLIED, ConditionType.FAILED,
})  # fmt: skip
_BAD_WHEN_TRUE = frozenset({ConditionType.STALLED, ConditionType.CONTENDED, ConditionType.FAILED})


@dataclass(frozen=True)
class Turn:
    """A condition that turned.

    Attributes:
        reason: of the condition.
        action: its type.
        note: its message.
        warning: whether somebody should look.
    """

    reason: str
    action: str
    note: str
    warning: bool


class Writer:
    """Writes statuses."""

    def __init__(self, client: Client, recorder: Recorder, metrics: Metrics) -> None:
        """Prepare.

        Args:
            client: fenced.
            recorder: of events.
            metrics: of the operator.
        """
        self._client, self._recorder, self._metrics = client, recorder, metrics

    async def status(self, item: Ours, status: Wire) -> bool:
        """Write a status unless it is the stored one; whether it was written.

        Raises:
            Conflict: the object changed since it was looked at.
        """
        metadata = {name: getattr(item.metadata, name) for name in ("name", "namespace", "uid")}
        version = (item.metadata.model_extra or {}).get("resourceVersion")
        return await self._write(item.kind, metadata, version, item.status.to_wire(), status)

    async def raw_status(self, item: Object, status: Wire) -> bool:
        """The same for an object that does not parse."""
        metadata = {name: item["metadata"].get(name) for name in ("name", "namespace", "uid")}
        version = item["metadata"].get("resourceVersion")
        return await self._write(item["kind"], metadata, version, part(item, "status"), status)

    async def _write(self, kind: str, metadata: Wire, version: object, stored: Wire, status: Wire) -> bool:
        if dict(status) == dict(stored):
            return False
        head = {"apiVersion": API_VERSION, "kind": kind, "metadata": dict(metadata)}
        document = {**head, "metadata": {**metadata, "resourceVersion": version}, "status": dict(status)}
        await self._client.apply(_RESOURCES[kind], document, force=True, subresource="status")
        self._metrics.status_writes.labels(kind).inc()
        for turn in turns(stored, status):
            self._recorder.record(head, turn.reason, turn.action, turn.note, warning=turn.warning)
        return True


def turns(stored: Wire, fresh: Wire) -> Iterator[Turn]:
    """Conditions whose status or reason differs; one that appears with nothing wrong is no news."""
    before = {c["type"]: (c["status"], c["reason"]) for c in stored.get("conditions", ())}
    for condition in fresh.get("conditions", ()):
        type_, seen = condition["type"], (condition["status"], condition["reason"])
        usual = type_ in _BAD_WHEN_TRUE and condition["status"] == "False"
        if type_ not in _TOLD or before.get(type_) == seen or (type_ not in before and usual):
            continue
        warning = condition["status"] == ("True" if type_ in _BAD_WHEN_TRUE else "False")
        yield Turn(condition["reason"], type_, condition["message"] or condition["reason"], warning and not usual)
