"""Pods cut down to what kvplan looks at, in the shape the API server gives them.

Inputs: core/v1 Pods. Output: the same Pods with fewer fields: one watch holds every pod of the cluster, foreign ones
too, because they hold GPUs, and a whole Pod is twenty times as large. The resourceVersion is left out on purpose: a
pod that changed in no way that matters is equal, and wakes nobody; whoever writes to a pod reads it right before.
Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kvplan_operator.api.labels import GROUP, PORT_ANNOTATION
from kvplan_operator.kube.answers import Object
from kvplan_operator.model.watched import Watched

POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_OUR_ANNOTATIONS = f"{GROUP}/"

Cut = Callable[[Any], Any]


def project_pod(pod: Object) -> Object:
    """What is kept of a Pod; absent and empty fields are left out."""
    return Watched({"apiVersion": "v1", "kind": "Pod", **_fields(pod, _POD)})


def _fields(item: Mapping[str, Any], cuts: Mapping[str, Cut]) -> Object:
    kept = ((name, cut(item[name])) for name, cut in cuts.items() if item.get(name) is not None)
    return {name: value for name, value in kept if value not in ({}, [])}


def _whole(value: Any) -> Any:
    return value


def _mapping(**cuts: Cut) -> Cut:
    return lambda item: _fields(item, cuts)


def _each(cut: Cut) -> Cut:
    def cut_all(items: Iterable[Any]) -> list[Any]:
        return [cut(item) for item in items]

    return cut_all


def _annotations(annotations: Mapping[str, str]) -> Object:
    return {
        name: value
        for name, value in annotations.items()
        if name in (POD_DELETION_COST, PORT_ANNOTATION) or name.startswith(_OUR_ANNOTATIONS)
    }


_OWNER = _mapping(apiVersion=_whole, kind=_whole, name=_whole, uid=_whole, controller=_whole)
_RESOURCES = _mapping(requests=_whole, limits=_whole)
_PORT = _mapping(name=_whole, containerPort=_whole)
_CONTAINER = _mapping(name=_whole, ports=_each(_PORT), resources=_RESOURCES, restartPolicy=_whole)
_CONDITION = _mapping(type=_whole, status=_whole, reason=_whole, message=_whole, lastTransitionTime=_whole)
_WAITING = _mapping(reason=_whole, message=_whole)
_TERMINATED = _mapping(reason=_whole, exitCode=_whole)
_STATE = _mapping(waiting=_WAITING, terminated=_TERMINATED)
_CONTAINER_STATUS = _mapping(name=_whole, ready=_whole, restartCount=_whole, state=_STATE, lastState=_STATE)

_METADATA = _mapping(
    name=_whole,
    namespace=_whole,
    uid=_whole,
    labels=_whole,
    annotations=_annotations,
    ownerReferences=_each(_OWNER),
    creationTimestamp=_whole,
    deletionTimestamp=_whole,
)
_SPEC = _mapping(
    nodeName=_whole,
    resources=_RESOURCES,
    resourceClaims=_each(_mapping(name=_whole)),
    containers=_each(_CONTAINER),
    initContainers=_each(_CONTAINER),
    terminationGracePeriodSeconds=_whole,
)
_STATUS = _mapping(
    phase=_whole,
    reason=_whole,
    podIP=_whole,
    conditions=_each(_CONDITION),
    containerStatuses=_each(_CONTAINER_STATUS),
    initContainerStatuses=_each(_CONTAINER_STATUS),
)
_POD = {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS}
