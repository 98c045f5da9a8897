"""What was done to a fleet before, read from its objects; and the lists of times that carry it from step to step.

Inputs: a ``Snapshot``. Outputs: a frozen ``History``. Nothing is kept in memory: a restarted operator knows the same.

* When the partition was complete: the transition time of ``Applied`` on the RoutingPlan in force.
* When groups were restarted: ``kvplan.dev/restarted-at`` on the engine sets. Whoever stops a group that serves, for
  a change, notes it in the same request (``act.notes``). A first start is no restart.
* When another controller set our fields back: ``kvplan.dev/set-back-at`` on the engine sets. Whoever writes a field
  again that it had written before notes it in the same request.

Before a set is deleted its notes are copied to one that stays; until it is gone both have them, so a time that stands
on two sets counts once. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import RESTARTED_ANNOTATION, SET_BACK_ANNOTATION
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.gate.gate_input import History
from kvplan_operator.model.instants import instant, timestamp
from kvplan_operator.model.pods import configuration_of, part, parts
from kvplan_operator.model.snapshot import Object, Snapshot
from kvplan_operator.plan.standing import holds_since

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
    sets = (*snapshot.cluster.deployments, *snapshot.cluster.worker_sets)
    return History(
        stands_since=None if current is None else holds_since(current, ConditionType.APPLIED),
        restarts=all_instants(sets, RESTARTED_ANNOTATION),
        set_back=all_instants(sets, SET_BACK_ANNOTATION),
        load_seconds=max(_load_seconds(snapshot.cluster.pods, snapshot.fleet), default=USUAL_LOAD_SECONDS),
    )


def instants(noted: str) -> Iterator[float]:
    """Times of a list in an annotation, seconds since the epoch; what is no time is passed over."""
    for text in noted.split(","):
        try:
            yield instant(text)
        except ValueError:
            continue


def all_instants(items: Iterable[Object], annotation: str) -> tuple[float, ...]:
    """Times that an annotation lists on any of several objects, ascending; one on two objects is the same event."""
    found: Counter[float] = Counter()
    for item in items:
        found |= Counter(instants(noted(item, annotation)))
    return tuple(sorted(found.elements()))


def with_instants(listed: str, more: Iterable[float], now: float) -> str:
    """A list of times with more of them, without those that no check looks at any more.

    Args:
        listed: value of the annotation; empty where there is none.
        more: seconds since the epoch.
        now: seconds since the epoch.
    """
    recent = [at for at in (*instants(listed), *more) if now - at < KEPT_SECONDS]
    return ",".join(timestamp(at) for at in sorted(recent)[-MOST_KEPT:])


def noted(item: Object, annotation: str) -> str:
    """Value of an annotation; empty where it is absent."""
    return str(part(part(item, "metadata"), "annotations").get(annotation) or "")


def _load_seconds(pods: tuple[Object, ...], fleet: ServingFleet) -> Iterator[float]:
    """From bound to ready, of each pod of the fleet that never restarted; seconds."""
    for pod in (pod for pod in pods if configuration_of(pod, fleet) is not None):
        since = _true_since(pod)
        restarted = any(container.get("restartCount") for container in parts(part(pod, "status"), "containerStatuses"))
        if {"PodScheduled", "Ready"} <= set(since) and not restarted:
            yield max(0.0, since["Ready"] - since["PodScheduled"])


def _true_since(pod: Object) -> Mapping[str, float]:
    found = {}
    for condition in parts(part(pod, "status"), "conditions"):
        times = tuple(instants(str(condition.get("lastTransitionTime") or "")))
        if condition.get("status") == "True" and times:
            found[str(condition.get("type"))] = times[0]
    return found
