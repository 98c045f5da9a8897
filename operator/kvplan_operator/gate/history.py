"""What was done to a fleet before, read from its objects; and the lists of times that carry it from step to step.

Inputs: a ``Snapshot``. Outputs: a frozen ``History``. Nothing is kept in memory: a restarted operator knows the same.

* When the partition was complete: the transition time of ``Applied`` on the RoutingPlan in force.
* When groups were restarted: ``kvplan.dev/restarted-at`` on the Deployments. Whoever stops a group that serves, for
  a change, writes ``with_instant`` of the old value in the same request. A first start is no restart.
* When another controller set our fields back: ``kvplan.dev/set-back-at`` on the Deployments. Whoever writes a field
  again that it had written before writes ``with_instant`` in the same request.

Pure.
"""

from collections.abc import Iterator, Mapping

from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.gate.gate_input import History
from kvplan_operator.model.instants import instant, timestamp
from kvplan_operator.model.pods import configuration_of, part, parts
from kvplan_operator.model.snapshot import Object, Snapshot
from kvplan_operator.plan.standing import holds_since

RESTARTED_ANNOTATION = "kvplan.dev/restarted-at"
SET_BACK_ANNOTATION = "kvplan.dev/set-back-at"
KEPT_SECONDS = 3_600.0
"""Older entries of the two lists are dropped at the next write."""
MOST_KEPT = 64
"""Entries of one list; the newest stay."""
USUAL_LOAD_SECONDS = 120.0
"""How long a model loads where no group of the fleet was seen to load one."""


def history_of(snapshot: Snapshot, current: RoutingPlan | None) -> History:
    """What was done before.

    Args:
        snapshot: one look at the fleet.
        current: the plan in force.
    """
    deployments = snapshot.cluster.deployments
    return History(
        stands_since=None if current is None else holds_since(current, ConditionType.APPLIED),
        restarts=tuple(sorted(at for item in deployments for at in instants(_noted(item, RESTARTED_ANNOTATION)))),
        set_back=tuple(sorted(at for item in deployments for at in instants(_noted(item, SET_BACK_ANNOTATION)))),
        load_seconds=max(_load_seconds(snapshot.cluster.pods, snapshot.fleet), default=USUAL_LOAD_SECONDS),
    )


def instants(noted: str) -> Iterator[float]:
    """Times of a list in an annotation, seconds since the epoch; what is no time is passed over."""
    for text in noted.split(","):
        try:
            yield instant(text)
        except ValueError:
            continue


def with_instant(noted: str, now: float) -> str:
    """A list of times with one more, without those that no check looks at any more.

    Args:
        noted: value of the annotation; empty where there is none.
        now: seconds since the epoch.
    """
    recent = [at for at in instants(noted) if now - at < KEPT_SECONDS]
    return ",".join(timestamp(at) for at in sorted([*recent, now])[-MOST_KEPT:])


def _noted(item: Object, annotation: str) -> str:
    return str(part(part(item, "metadata"), "annotations").get(annotation) or "")


def _load_seconds(pods: tuple[Object, ...], fleet: ServingFleet) -> Iterator[float]:
    """From bound to ready, of each pod of the fleet that never restarted; seconds."""
    for pod in pods:
        since = _true_since(pod)
        restarted = any(container.get("restartCount") for container in parts(part(pod, "status"), "containerStatuses"))
        if configuration_of(pod, fleet) is not None and {"PodScheduled", "Ready"} <= set(since) and not restarted:
            yield max(0.0, since["Ready"] - since["PodScheduled"])


def _true_since(pod: Object) -> Mapping[str, float]:
    found = {}
    for condition in parts(part(pod, "status"), "conditions"):
        times = tuple(instants(str(condition.get("lastTransitionTime") or "")))
        if condition.get("status") == "True" and times:
            found[str(condition.get("type"))] = times[0]
    return found
