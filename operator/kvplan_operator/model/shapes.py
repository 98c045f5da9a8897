"""The shape of Nodes and Pods as far as planning reads them: what is malformed is refused, never taken for empty.

Inputs: core/v1 objects as plain values. Output: nothing, or an ``InvalidInput`` that names object and field. An empty
``taints`` means that every pod may come, so a ``taints`` that cannot be read must not count as empty. Absent and null
fields are fine, as for the API server; fields that planning does not read are not looked at. Pure.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kvplan_solver.errors import InvalidInput

Shape = Any
"""A mapping of fields to shapes (``*`` stands for every other field), a list with the shape of an entry, or a type."""

_TEXTS: Shape = MappingProxyType({"*": str})
_METADATA: Shape = MappingProxyType({"name": str, "namespace": str, "labels": _TEXTS})
_RESOURCES: Shape = MappingProxyType({"requests": {}, "limits": {}})
_CONTAINERS: Shape = [{"resources": _RESOURCES, "restartPolicy": str}]

NODE: Shape = MappingProxyType(
    {
        "metadata": _METADATA,
        "spec": {"unschedulable": bool, "taints": [{"key": str, "value": str, "effect": str}]},
        "status": {"allocatable": {}, "conditions": [{"type": str, "status": str}]},
    }
)
POD: Shape = MappingProxyType(
    {
        "metadata": {**_METADATA, "deletionTimestamp": str, "ownerReferences": [{"kind": str, "name": str}]},
        "spec": {
            "nodeName": str,
            "resources": _RESOURCES,
            "containers": _CONTAINERS,
            "initContainers": _CONTAINERS,
        },
        "status": {"phase": str},
    }
)

_WORDS = {str: "a string (quote it)", bool: "true or false", list: "a list", dict: "a mapping"}


def check_shape(subject: str, value: object, shape: Shape, path: str = "") -> None:
    """Refuse a value of another shape.

    Raises:
        InvalidInput: names the first field, in the order of the shape, that is of a wrong type.
    """
    if value is None:
        return
    wanted = _type_of(shape)
    fits = isinstance(value, Mapping) if wanted is dict else isinstance(value, wanted)
    if not fits:
        raise InvalidInput(subject, path or "the object", value, f"write {_WORDS[wanted]}, or leave the field out")
    if isinstance(value, Mapping):
        _check_fields(subject, value, shape, path)
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            _check_entry(subject, entry, shape[0], f"{path}[{position}]")


def _type_of(shape: Shape) -> type:
    if isinstance(shape, Mapping):
        return dict
    return list if isinstance(shape, list) else shape


def _check_fields(subject: str, value: Mapping[Any, object], shape: Mapping[str, Shape], path: str) -> None:
    others = [name for name in value if name not in shape] if "*" in shape else []
    for name in [*(name for name in shape if name != "*"), *others]:
        inner = f"{path}.{name}" if name in shape else f"{path}[{name}]"
        check_shape(subject, value.get(name), shape.get(name, shape.get("*")), inner.removeprefix("."))


def _check_entry(subject: str, entry: object, shape: Shape, path: str) -> None:
    """An entry of a list; null is no entry."""
    if entry is None:
        raise InvalidInput(subject, path, entry, f"write {_WORDS[_type_of(shape)]}, or remove the entry")
    check_shape(subject, entry, shape, path)
