"""What is kept of objects that are watched: without what nobody reads and what changes by itself. Pure."""

from kvplan_operator.kube.answers import Object
from kvplan_operator.model.pods import part, parts
from kvplan_operator.model.watched import Watched


def without_managed_fields(item: Object) -> Object:
    """An object without the ledger of who wrote which field, which is often larger than the rest."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {**item, "metadata": metadata}


def project_node(node: Object) -> Object:
    """What matters of a Node; heartbeats and images are no change."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    conditions = [{name: c.get(name) for name in ("type", "status")} for c in status.get("conditions") or ()]
    return Watched({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {name: metadata[name] for name in ("name", "uid", "labels") if name in metadata},
        "spec": {name: spec[name] for name in ("unschedulable", "taints") if name in spec},
        "status": {"allocatable": status.get("allocatable") or {}, "conditions": conditions},
    })  # fmt: skip


def holds_devices(pod: Object) -> bool:
    """Whether a pod asks for anything but what every node has: such names have a slash, as ``nvidia.com/gpu`` does."""
    spec = part(pod, "spec")
    holders = (spec, *parts(spec, "containers"), *parts(spec, "initContainers"))
    asked = (part(part(holder, "resources"), kind) for holder in holders for kind in ("requests", "limits"))
    return any("/" in name for names in asked for name in names)
