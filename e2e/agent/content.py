"""What is in a pod's projected volumes: file names and bytes.

Inputs: the volume, the pod, the objects and tokens it refers to. Outputs: files. Pure.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from e2e.agent import fields
from e2e.agent.api import Object
from e2e.agent.errors import NotYet
from e2e.agent.references import CONFIG_MAP, SECRET


@dataclass(frozen=True)
class File:
    """One file of a volume: its bytes and its permission bits."""

    content: bytes
    mode: int


Files = dict[str, File]
Objects = Mapping[tuple[str, str], Object | None]
"""By resource and name; None where there is no such object; without the key where nobody has looked yet."""


@dataclass(frozen=True)
class Known:
    """What the volumes of a pod are made from.

    Attributes:
        pod: as the API server knows it.
        objects: ConfigMaps and Secrets.
        tokens: service-account tokens by audience; the API server's own under "".
    """

    pod: Object
    objects: Objects
    tokens: Mapping[str, str]


def files(projected: Object, known: Known) -> Files:
    """Return the files of a projected volume.

    Raises:
        NotYet: when something that is not optional is missing.
    """
    result: Files = {}
    for source in projected["sources"]:
        ((kind, spec),) = source.items()
        result.update(_SOURCES[kind](spec, known, projected["defaultMode"]))
    return result


def data_of(resource: str, found: Object) -> dict[str, bytes]:
    """Return the keys of a ConfigMap or Secret with their bytes; `resource` says which of the two it is."""
    if resource == SECRET:
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}
    binary = {key: base64.b64decode(value) for key, value in found.get("binaryData", {}).items()}
    return {**{key: value.encode() for key, value in found.get("data", {}).items()}, **binary}


def _of_object(resource: str) -> Callable[[Object, Known, int], Files]:
    def read(spec: Object, known: Known, mode: int) -> Files:
        key = resource, spec["name"]
        found = known.objects.get(key)
        if found is None:
            if spec.get("optional") and key in known.objects:
                return {}
            raise NotYet(f"{resource} {spec['name']!r} not found")
        return _chosen(data_of(resource, found), spec, f"{resource} {spec['name']!r}", mode)

    return read


def _chosen(data: dict[str, bytes], spec: Object, what: str, mode: int) -> Files:
    if "items" not in spec:
        return {key: File(value, mode) for key, value in data.items()}
    chosen: Files = {}
    for item in spec["items"]:
        if item["key"] in data:
            chosen[item["path"]] = File(data[item["key"]], item.get("mode", mode))
        elif not spec.get("optional"):
            raise NotYet(f"{what} has no key {item['key']!r}")
    return chosen


def _of_pod(spec: Object, known: Known, mode: int) -> Files:
    return {item["path"]: File(_told(item, known.pod).encode(), item.get("mode", mode)) for item in spec["items"]}


def _told(item: Object, pod: Object) -> str:
    if "fieldRef" in item:
        return fields.field(pod, item["fieldRef"]["fieldPath"])
    reference = item["resourceFieldRef"]
    container = next(each for each in pod["spec"]["containers"] if each["name"] == reference["containerName"])
    return fields.resource(container, reference)


def _of_token(spec: Object, known: Known, _mode: int) -> Files:
    token = known.tokens.get(spec.get("audience", ""))
    if token is None:
        raise NotYet("the service-account token was not issued yet")
    return {spec["path"]: File(token.encode(), 0o600)}


_SOURCES: dict[str, Callable[[Object, Known, int], Files]] = {
    "configMap": _of_object(CONFIG_MAP),
    "secret": _of_object(SECRET),
    "downwardAPI": _of_pod,
    "serviceAccountToken": _of_token,
}
