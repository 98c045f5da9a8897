"""The manifests that are shipped, with the few words that a machine without pod networks and services needs.

Inputs: `manifests/`. Outputs: dictionaries to apply. What is changed is listed here and nothing else: a router pod's
containers speak over the pod's address instead of 127.0.0.1, which all pods of one machine would share.
"""

import base64
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.kubectl import Kubectl, Manifest
from e2e.harness.paths import REPOSITORY

SHIPPED = REPOSITORY / "manifests"
SAMPLES = Path(__file__).with_name("samples")
FLEET = "assistants"
OPERATOR_NAMESPACE = "kvplan-system"
OPERATOR = f"system:serviceaccount:{OPERATOR_NAMESPACE}:kvplan-operator"
GATEWAY_PORT = 8080
"""Of the Envoy in a router pod."""
_ADDRESS = "$KVPLAN_BED_POD_IP"
_MOUNTED, _CONFIG, _ENDPOINTS = "/etc/envoy/envoy.yaml", "/run/kvplan/envoy.yaml", "/run/kvplan/endpoints.json"
_OWN_ADDRESS = f"sed -E 's#(127|0)([.]0){{2}}[.][01]#'{_ADDRESS}'#; s#path: .*endpoints.json#path: {_ENDPOINTS}#'"
_RIGHTS = frozenset({"Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"})
_ROUTER_FILES = ("service-account", "rbac", "deployment", "service", "network-policy", "disruption-budget")
_SECRET_BYTES = 32


def namespace(name: str) -> Manifest:
    """A namespace."""
    return _object("Namespace", name)


def operator_rights(kubectl: Kubectl) -> list[Manifest]:
    """Namespace, service account and RBAC of the installation for one namespace, `serving`."""
    rendered = kubectl("kustomize", str(SHIPPED / "overlays" / "namespaced"))
    return [document for document in yaml.safe_load_all(rendered) if document["kind"] in _RIGHTS]


def router(replicas: int, settings: Mapping[str, str]) -> Iterator[Manifest]:
    """The request path of the sample's fleet: routers with further settings, each with its Envoy."""
    for name in _ROUTER_FILES:
        for document in _documents(SHIPPED / "router" / f"{name}.yaml"):
            yield _adapted(document, replicas, settings) if document["kind"] == "Deployment" else document
    text = (SHIPPED / "router" / "envoy.yaml").read_text()
    yield _object("ConfigMap", "kvplan-envoy", data={"envoy.yaml": text})
    secret = base64.b64encode(os.urandom(_SECRET_BYTES)).decode()
    yield _object("Secret", "kvplan-hash-secret", data={"hash-secret": secret})


def sample(name: str, directory: Path = SAMPLES) -> list[Manifest]:
    """The documents of one file of `samples/`."""
    return _documents(directory / f"{name}.yaml")


def _documents(file: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


def _object(kind: str, name: str, **content: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **content}


def _adapted(deployment: Manifest, replicas: int, settings: Mapping[str, str]) -> Manifest:
    """The Deployment with its inner conversation on the pod's address, and with further settings."""
    deployment["spec"]["replicas"] = replicas
    router, envoy = deployment["spec"]["template"]["spec"]["containers"]
    listen = next(entry for entry in router["env"] if entry["name"] == "KVPLAN_ROUTER_LISTEN")
    listen["value"] = "$(POD_IP):9002"
    router["env"] += [{"name": f"KVPLAN_ROUTER_{name}", "value": value} for name, value in settings.items()]
    hook = " ".join(router["lifecycle"]["preStop"]["exec"]["command"])
    router["lifecycle"]["preStop"]["exec"]["command"] = ["sh", "-c", f"{hook} --admin={_ADDRESS}:9901"]
    envoy["args"] = [f"{_OWN_ADDRESS} {_MOUNTED} > {_CONFIG}; {envoy['args'][0].replace(_MOUNTED, _CONFIG)}"]
    return deployment
