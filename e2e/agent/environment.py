"""The environment variables of a container.

Inputs: the container, its pod, the ConfigMaps and Secrets it refers to. Outputs: the variables that the spec sets, in
its order, expanded. Pure. Nothing of the agent's own environment is in it.
"""

from collections.abc import Mapping

from e2e.agent import fields
from e2e.agent.api import Object
from e2e.agent.content import Objects, data_of
from e2e.agent.errors import CannotRun
from e2e.agent.expansion import expand
from e2e.agent.references import CONFIG_MAP, SECRET

_CONFIG_ERROR = "CreateContainerConfigError"


def variables(container: Object, pod: Object, objects: Objects, base: Mapping[str, str]) -> dict[str, str]:
    """Return the container's environment.

    Args:
        container: its spec.
        pod: as the API server knows it, with its address.
        objects: the ConfigMaps and Secrets that `envFrom` and `env` refer to.
        base: variables that the spec may override.

    Raises:
        CannotRun: when a key or object that is not optional is missing.
    """
    result = dict(base)
    for source in container.get("envFrom", []):
        result.update(_all_keys(source, objects))
    for entry in container.get("env", []):
        value = _value(entry, container, pod, objects)
        if value is not None:
            result[entry["name"]] = expand(value, result) if "valueFrom" not in entry else value
    return result


def _all_keys(source: Object, objects: Objects) -> dict[str, str]:
    kind, resource = ("configMapRef", CONFIG_MAP) if "configMapRef" in source else ("secretRef", SECRET)
    data = _data(resource, source[kind], objects)
    return {source.get("prefix", "") + key: value.decode(errors="replace") for key, value in data.items()}


def _value(entry: Object, container: Object, pod: Object, objects: Objects) -> str | None:
    source = entry.get("valueFrom")
    if source is None:
        return str(entry.get("value", ""))
    if "fieldRef" in source:
        return fields.field(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return fields.resource(container, source["resourceFieldRef"])
    if "configMapKeyRef" in source:
        return _key(CONFIG_MAP, source["configMapKeyRef"], objects)
    if "secretKeyRef" in source:
        return _key(SECRET, source["secretKeyRef"], objects)
    raise CannotRun(_CONFIG_ERROR, f"variable {entry['name']}: {', '.join(source)} is not supported on process nodes")


def _key(resource: str, reference: Object, objects: Objects) -> str | None:
    data = _data(resource, reference, objects)
    if reference["key"] in data:
        return data[reference["key"]].decode(errors="replace")
    if reference.get("optional"):
        return None
    raise CannotRun(_CONFIG_ERROR, f"{resource} {reference['name']!r} has no key {reference['key']!r}")


def _data(resource: str, reference: Object, objects: Objects) -> dict[str, bytes]:
    found = objects.get((resource, reference["name"]))
    if found is not None:
        return data_of(resource, found)
    if reference.get("optional"):
        return {}
    raise CannotRun(_CONFIG_ERROR, f"{resource} {reference['name']!r} not found")
