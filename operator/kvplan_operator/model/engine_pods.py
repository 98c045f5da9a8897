"""The pods of a fleet that answer for a group: whose metrics are read, and where.

Inputs: the fleet and pods. Outputs: pods by configuration, and the address of a pod's metrics. Of a group that spans
nodes only the leader serves. Pure.
"""

import ipaddress
from collections.abc import Mapping, Sequence

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import PORT_ANNOTATION
from kvplan_operator.model.pods import (
    WORKER_INDEX_LABEL,
    Object,
    configuration_of,
    is_terminal,
    labels_of,
    name_of,
    part,
    parts,
)

PORT_NAMES = ("http", "metrics")
"""Names of the container port that serves metrics, in order of preference."""
ENGINE_PORT = 8000
"""Where vLLM listens unless it is told otherwise."""


def engine_pods(fleet: ServingFleet, pods: Sequence[Object]) -> tuple[tuple[str, Object], ...]:
    """(configuration, pod) of each running engine, Terminating ones too: they may still serve."""
    found = ((configuration_of(pod, fleet), pod) for pod in pods if _serves(pod))
    return tuple((configuration, pod) for configuration, pod in found if configuration is not None)


def pods_by_configuration(fleet: ServingFleet, pods: Sequence[Object]) -> dict[str, list[str]]:
    """Names of the engines' pods by configuration; every configuration of the fleet has an entry."""
    names: dict[str, list[str]] = {configuration.name: [] for configuration in fleet.spec.configurations}
    for configuration, pod in engine_pods(fleet, pods):
        names.setdefault(configuration, []).append(name_of(pod))
    return names


def pod_beginnings(pods: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """How the names of a fleet's pods begin, one beginning per configuration: a short superset for a query.

    In a namespace of many fleets every answer would otherwise hold the engines of all of them.
    """
    found = {_common_beginning(names) for names in pods.values() if names}
    return tuple(sorted(one for one in found if not any(one.startswith(other) for other in found - {one})))


def endpoint(pod: Object, default_port: int) -> str | None:
    """``http://ip:port`` of a pod's metrics; None while it has no address, or one that no pod can have.

    The port is the annotated one, else the first container port of a known name, else the default.
    """
    host, port = host_of(pod), annotated_port(pod)
    if host is None or (port is None and PORT_ANNOTATION in _annotations(pod)):
        return None
    return f"http://{host}:{port or container_port(pod, PORT_NAMES) or default_port}"


def host_of(pod: Object) -> str | None:
    """A pod's address as URLs write it; None while it has none, or one that no pod can have."""
    try:
        address = ipaddress.ip_address(str(part(pod, "status").get("podIP") or ""))
    except ValueError:
        return None
    # A link-local address is a machine's own service (cloud metadata), never a pod.
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return None
    return f"[{address}]" if address.version == 6 else str(address)


def annotated_port(pod: Object) -> int | None:
    """The port that the pod's annotation names; None where it names none that there is."""
    text = str(_annotations(pod).get(PORT_ANNOTATION) or "")
    return int(text) if text.isdecimal() and 0 < int(text) < 65_536 else None


def container_port(pod: Object, names: Sequence[str]) -> int | None:
    """The first container port with one of these names, the earlier names first."""
    ports = [port for container in parts(part(pod, "spec"), "containers") for port in parts(container, "ports")]
    found = (port.get("containerPort") for name in names for port in ports if port.get("name") == name)
    return next((port for port in found if isinstance(port, int)), None)


def _common_beginning(names: Sequence[str]) -> str:
    """What all names begin with: what the first and the last of them in order do."""
    first, last = min(names), max(names)
    apart = (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(apart, len(first))]


def _serves(pod: Object) -> bool:
    running = part(pod, "status").get("phase") == "Running" and not is_terminal(pod)
    return running and labels_of(pod).get(WORKER_INDEX_LABEL, "0") == "0"


def _annotations(pod: Object) -> Object:
    return part(part(pod, "metadata"), "annotations")
