"""What a pod may be told about itself: the fields and resources of the downward API.

Inputs: the pod as the API server knows it, with its address. Outputs: text. Resource limits that are not set are the
node's in Kubernetes and an error here.
"""

import re

from e2e.agent import quantities
from e2e.agent.api import Object
from e2e.agent.errors import CannotRun

_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_PATHS = {
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.podIP",
}


def field(pod: Object, path: str) -> str:
    """Return the value of a `fieldRef`.

    Raises:
        CannotRun: when the downward API has no such field.
    """
    entry = _MAP_ENTRY.fullmatch(path)
    if entry:
        return str(pod["metadata"].get(entry[1], {}).get(entry[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        return _listed(pod["metadata"].get(path.removeprefix("metadata."), {}))
    if path in ("status.podIPs", "status.hostIPs"):
        path = path.removesuffix("s")
    if path not in _PATHS:
        raise CannotRun("CreateContainerConfigError", f"fieldPath {path} is not one of {', '.join(sorted(_PATHS))}")
    part, name = path.split(".")
    return str(pod.get(part, {}).get(name, ""))


def resource(container: Object, reference: Object) -> str:
    """Return the value of a `resourceFieldRef` in units of its divisor.

    Raises:
        CannotRun: when the container does not set that resource.
    """
    kind, _, name = reference["resource"].partition(".")
    quantity = container.get("resources", {}).get(kind, {}).get(name)
    if quantity is None:
        raise CannotRun("CreateContainerConfigError", f"container {container['name']} sets no {reference['resource']}")
    return quantities.in_units(str(quantity), str(reference.get("divisor", "0")))


def _listed(entries: dict[str, str]) -> str:
    escaped = ((key, value.replace("\\", "\\\\").replace('"', '\\"')) for key, value in sorted(entries.items()))
    return "\n".join(f'{key}="{value}"' for key, value in escaped)
