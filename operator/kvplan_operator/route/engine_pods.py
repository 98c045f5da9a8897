"""The engines behind the slots: one entry per group of the fleet, read off its pods.

Inputs: Pods as plain mappings, the fleet. Outputs: frozen ``EnginePod`` values, oldest first. A group that spans
pods answers through its leader, so the others are left out. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.model.engine_pods import ENGINE_PORT, annotated_port, container_port, host_of
from kvplan_operator.model.instants import instant_or_zero
from kvplan_operator.model.pods import (
    WORKER_INDEX_LABEL,
    Object,
    configuration_of,
    is_ready,
    is_terminal,
    is_terminating,
    labels_of,
    name_of,
    part,
    ready_condition,
)

HTTP_PORT_NAME = "http"


@dataclass(frozen=True)
class EnginePod:
    """One group as the routers see it.

    Attributes:
        uid: of the pod.
        name: of the pod.
        configuration: of the group.
        address: ``ip:port``; empty before the pod has an address.
        ready: whether it takes requests.
        terminating: whether it was told to go.
        created: RFC 3339 time, empty where unknown.
        ready_changed: when ``ready`` last changed, seconds since the epoch; 0 where unknown.
    """

    uid: str
    name: str
    configuration: str
    address: str = ""
    ready: bool = False
    terminating: bool = False
    created: str = ""
    ready_changed: float = 0.0

    @property
    def order(self) -> tuple[str, str, str]:
        """Oldest first, then by name."""
        return self.created, self.name, self.uid


def engine_pods(pods: Iterable[Object], fleet: ServingFleet) -> tuple[EnginePod, ...]:
    """Every running or starting group of the fleet, oldest first."""
    found = (_engine_pod(pod, configuration_of(pod, fleet)) for pod in pods)
    return tuple(sorted((pod for pod in found if pod is not None), key=lambda pod: pod.order))


def _engine_pod(pod: Object, configuration: str | None) -> EnginePod | None:
    metadata = part(pod, "metadata")
    if configuration is None or is_terminal(pod) or not metadata.get("uid"):
        return None
    if labels_of(pod).get(WORKER_INDEX_LABEL, "0") != "0":
        return None
    changed = ready_condition(pod).get("lastTransitionTime")
    return EnginePod(
        uid=str(metadata["uid"]),
        name=name_of(pod),
        configuration=configuration,
        address=_address(pod),
        ready=is_ready(pod),
        terminating=is_terminating(pod),
        created=str(metadata.get("creationTimestamp") or ""),
        ready_changed=instant_or_zero(str(changed or "")),
    )


def _address(pod: Object) -> str:
    host = host_of(pod)
    return "" if host is None else f"{host}:{_port(pod)}"


def _port(pod: Object) -> int:
    """Where requests go: the container port named http, else the annotated one, else vLLM's own."""
    return container_port(pod, (HTTP_PORT_NAME,)) or annotated_port(pod) or ENGINE_PORT
