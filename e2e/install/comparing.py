"""What must be equal in two renderings of one installation.

Inputs: objects of kustomize or helm. Outputs: the same without what each tool adds, and under one name. Pure.
"""

import json
from collections.abc import Iterable
from typing import Any

import yaml

from e2e.install.rendering import Object, Objects, by_name

_CHARTS_NAMES = {"kvplan-router-assistants": "kvplan-router"}
_CHARTS_OWN = {("ConfigMap", "kvplan-router"): "kvplan-envoy"}
_LABELS_OF_TOOLS = frozenset({"helm.sh/chart", "app.kubernetes.io/managed-by"})


def comparable(objects: Iterable[Object]) -> Objects:
    """Objects by kind, namespace and name, as kustomize names them."""
    return {
        (kind, place, _CHARTS_OWN.get((kind, name), name)): _bare(item)
        for (kind, place, name), item in by_name(map(_renamed, objects)).items()
        if kind != "Namespace"  # helm's --create-namespace
    }


def _renamed(item: Object) -> Object:
    text = json.dumps(item)
    for name, known in _CHARTS_NAMES.items():
        text = text.replace(name, known)
    found: Object = json.loads(text)
    return found


def _bare(item: Object) -> Object:
    labels = item["metadata"].get("labels", {})
    kept = {name: value for name, value in labels.items() if name not in _LABELS_OF_TOOLS}
    if item["kind"] in ("ConfigMap", "Secret"):
        return {"labels": kept.get("app.kubernetes.io/part-of"), "content": _content(item)}
    rest = {name: value for name, value in item.items() if name != "metadata"}
    if item["kind"] == "Deployment":
        _make_bare(rest["spec"]["template"])
    return {**rest, "labels": kept.get("app.kubernetes.io/part-of")}


def _make_bare(template: Object) -> None:
    """Remove how pods follow changed settings: helm by a checksum, kustomize by names with a hash in them."""
    annotations = template["metadata"]["annotations"]
    template["metadata"]["annotations"] = {k: v for k, v in annotations.items() if not k.startswith("checksum/")}
    for volume in template["spec"]["volumes"]:
        for source in volume.keys() & {"configMap", "secret"}:
            volume[source] = {}
    for container in template["spec"]["containers"]:
        container.pop("imagePullPolicy", None)


def _content(item: Object) -> Any:
    """Settings and configurations as values; of a secret, which keys it has."""
    if item["kind"] == "Secret":
        return sorted(item["data"])
    return {name: yaml.safe_load(text) for name, text in item["data"].items()}
