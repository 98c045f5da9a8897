"""The engines behind the slots: one entry per group of the fleet, read off its pods.

Inputs: Pods as plain mappings, the fleet. Outputs: frozen ``EnginePod`` values, oldest first. A group that spans
pods answers through its leader, so the others are left out. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import PORT_ANNOTATION
from kvplan_operator.model.pods import (
    WORKER_INDEX_LABEL,
    Object,
    configuration_of,
    is_terminal,
    is_terminating,
    labels_of,
    name_of,
    part,
    parts,
)

HTTP_PORT_NAME = "http"
DEFAULT_PORT = 8000
"""What ``vllm serve`` listens on."""


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
    found = (_engine_pod(pod, configuration_of(pod, fleet)) for pod in pods if not is_terminal(pod))
    return tuple(sorted((pod for pod in found if pod is not None), key=lambda pod: pod.order))


def _engine_pod(pod: Object, configuration: str | None) -> EnginePod | None:
    metadata = part(pod, "metadata")
    if configuration is None or not metadata.get("uid"):
        return None
    if labels_of(pod).get(WORKER_INDEX_LABEL, "0") != "0":
        return None
    condition = ready_condition(pod)
    return EnginePod(
        uid=str(metadata["uid"]),
        name=name_of(pod),
        configuration=configuration,
        address=_address(pod),
        ready=is_ready(pod),
        terminating=is_terminating(pod),
        created=str(metadata.get("creationTimestamp") or ""),
        ready_changed=seconds_of(str(condition.get("lastTransitionTime") or "")),
    )


def ready_condition(pod: Object) -> Object:
    """The pod's Ready condition, empty where it has none yet."""
    conditions = parts(part(pod, "status"), "conditions")
    return next((condition for condition in conditions if condition.get("type") == "Ready"), {})


def is_ready(pod: Object) -> bool:
    """Whether the pod says it can serve."""
    return ready_condition(pod).get("status") == "True"


def seconds_of(time: str) -> float:
    """An RFC 3339 time as seconds since the epoch; 0 where it is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0


def _address(pod: Object) -> str:
    ip = str(part(pod, "status").get("podIP") or "")
    if not ip:
        return ""
    return f"[{ip}]:{_port(pod)}" if ":" in ip else f"{ip}:{_port(pod)}"


def _port(pod: Object) -> int:
    """The container port named http, else the annotated one, else vLLM's own."""
    containers = parts(part(pod, "spec"), "containers")
    named = [p.get("containerPort") for c in containers for p in parts(c, "ports") if p.get("name") == HTTP_PORT_NAME]
    annotated = part(part(pod, "metadata"), "annotations").get(PORT_ANNOTATION)
    for port in (*named, annotated):
        if str(port or "").isdecimal() and 0 < int(str(port)) < 65_536:
            return int(str(port))
    return DEFAULT_PORT
