"""Which ConfigMaps and Secrets a pod's volumes and a container's environment need.

Inputs: specs. Outputs: references, each once, in the order of the spec. Pure. A configMap, secret or downwardAPI
volume is a projected volume with one source; here it is made one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from e2e.agent.api import Object

CONFIG_MAP = "configmaps"
SECRET = "secrets"  # noqa: S105 - the resource's name
_DEFAULT_MODE = 0o644


@dataclass(frozen=True)
class Reference:
    """An object of the pod's own namespace.

    Attributes:
        resource: `configmaps` or `secrets`.
        name: of the object.
        optional: whether the pod starts without it.
    """

    resource: str
    name: str
    optional: bool


def as_projected(volume: Object) -> Object | None:
    """Return the volume as a projected one, or None when it is of another type."""
    if "projected" in volume:
        return {"defaultMode": _DEFAULT_MODE, "sources": [], **volume["projected"]}
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            source = dict(volume[kind])
            if kind == "secret":
                source["name"] = source.pop("secretName")
            return {"defaultMode": source.get("defaultMode", _DEFAULT_MODE), "sources": [{kind: source}]}
    return None


def of_volumes(volumes: Iterable[Object]) -> list[Reference]:
    """Return what the volumes refer to."""
    projected = (as_projected(volume) for volume in volumes)
    sources = (source for each in projected if each for source in each["sources"])
    return _distinct(_of_source(source) for source in sources)


def of_environment(container: Object) -> list[Reference]:
    """Return what the container's environment refers to."""
    return _distinct([*map(_of_source, _environment_sources(container))])


def _environment_sources(container: Object) -> Iterator[Object]:
    for entry in container.get("envFrom", []):
        yield {kind.removesuffix("Ref"): entry[kind] for kind in ("configMapRef", "secretRef") if kind in entry}
    for entry in container.get("env", []):
        value = entry.get("valueFrom", {})
        yield {
            kind.removesuffix("KeyRef"): value[kind] for kind in ("configMapKeyRef", "secretKeyRef") if kind in value
        }


def _of_source(source: Object) -> Reference | None:
    for kind, resource in (("configMap", CONFIG_MAP), ("secret", SECRET)):
        if kind in source:
            return Reference(resource, source[kind]["name"], bool(source[kind].get("optional")))
    return None


def _distinct(references: Iterable[Reference | None]) -> list[Reference]:
    return list(dict.fromkeys(each for each in references if each is not None))
