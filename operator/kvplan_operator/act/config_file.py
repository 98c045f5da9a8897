"""The engine's flags as a file: ``vllm serve --config /etc/kvplan/engine.yaml`` from a ConfigMap.

Inputs: fleet and flags. Outputs: an immutable ConfigMap named after the digest of the flags, and what a pod template
needs to read it. It has no owner: engines outlive the fleet, and one that restarts needs its file. Flags on the command
line win over the file, so kvplan's are taken off the command line. Pure.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kvplan_operator.act.arguments import SWITCHES
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import ENGINE_CONFIG_ANNOTATION, FLEET_LABEL

DIRECTORY = "/etc/kvplan"
FILE_NAME = "engine.yaml"
PATH = f"{DIRECTORY}/{FILE_NAME}"
VOLUME = "kvplan-engine"
CONFIG_FLAG = "config"
ANNOTATION = ENGINE_CONFIG_ANNOTATION
COMPONENT_LABEL = "app.kubernetes.io/component"
COMPONENT = "engine-config"
"""Value of the component label of these ConfigMaps, which tells them from the routers' tables."""
_DIGITS = 10


def config_text(flags: Mapping[str, str]) -> str:
    """The file: one flag a line in order of name; JSON strings, so that no value is read as anything else."""
    lines = [f"{name}: {'true' if name in SWITCHES else json.dumps(flags[name])}\n" for name in sorted(flags)]
    return "".join(lines)


def config_map(fleet: ServingFleet, flags: Mapping[str, str]) -> dict[str, Any]:
    """The ConfigMap of these flags; equal flags give equal bytes and the same name."""
    text = config_text(flags)
    told_apart = hashlib.sha256(f"{fleet.metadata.name}\n{text}".encode()).hexdigest()[:_DIGITS]
    name = f"{fleet.metadata.name[:40].rstrip('-')}-engine-{told_apart}"
    labels = {FLEET_LABEL: fleet.metadata.name, COMPONENT_LABEL: COMPONENT}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": fleet.metadata.namespace, "labels": labels},
        "immutable": True,
        "data": {FILE_NAME: text},
    }


def volume(config_map_name: str) -> dict[str, Any]:
    """The pod's volume."""
    return {"name": VOLUME, "configMap": {"name": config_map_name}}


def volume_mount() -> dict[str, Any]:
    """The container's mount."""
    return {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}
