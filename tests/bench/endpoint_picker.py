"""The endpoint picker of the Gateway API's Inference Extension, as a peer: it reads the prompt and scores every engine.

llm-d's picker is built on it. In: a plane of destinations. Out: the picker in front of Envoy, with its default scorers
(queue, KV cache, prefixes), finding its endpoints at a real API server: one pod whose ports are the destinations.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.harness.assets import binary
from e2e.harness.build import module_directory
from e2e.harness.control_plane import ControlPlane
from e2e.harness.kubectl import Kubectl
from e2e.harness.process import Command
from e2e.harness.readiness import answers, until
from e2e.harness.recipes import ENDPOINT_PICKER
from e2e.router.filters import behave_like, ext_proc
from e2e.router.parts import HOST
from tests.bench.data_plane import Plane
from tests.bench.wrk import Load, run

PICKER = f"endpoint picker {ENDPOINT_PICKER.version}"
_POOL = "engines"
_LABEL = {"app": _POOL}
_SCORERS = {"queue-scorer": 2, "kv-cache-utilization-scorer": 2, "prefix-cache-scorer": 3}
"""Weights as the project's own chart sets them."""


@dataclass(frozen=True)
class Parts:
    """What it takes: the picker, and the definitions of its kinds."""

    picker: Path
    definitions: Path


def found_parts() -> Parts:
    """Build what is missing.

    Raises:
        BuildFailed: it does not build.
    """
    binary("kube-apiserver")
    return Parts(binary("epp"), module_directory(ENDPOINT_PICKER) / "config" / "crd" / "bases")


def start_picker(found: Parts, workers: int, made: Plane) -> None:
    """Start the picker and its Envoy; returns once requests are answered by its choice."""
    directory = made.directory / "control-plane"
    directory.mkdir()
    control_plane = made.enter(ControlPlane(directory, made.ports))
    kubectl = Kubectl(control_plane.kubeconfig, directory)
    _one_pod_of_all_engines(kubectl)
    kubectl("apply", "-f", str(found.definitions))
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
    _pool(kubectl, [int(address.rpartition(":")[2]) for address in made.addresses])
    made.write_endpoints()
    made.start("router", _command(found.picker, made, control_plane.kubeconfig))
    page = f"http://{HOST}:{made.router_ports.admin}/metrics"
    until(lambda: answers(page), "the endpoint picker", made.processes["router"], 60)
    made.start_envoy(_ask_the_picker, workers)
    until(lambda: _chooses(made), "the endpoint picker choosing", made.processes["router"], 60)


def _one_pod_of_all_engines(kubectl: Kubectl) -> None:
    """A pod that no node runs: its address is loopback, and it says that it is Ready."""
    container = {"name": "engine", "image": "engine"}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": _POOL, "labels": _LABEL},
        "spec": {"containers": [container], "schedulerName": "nobody"},
    }  # fmt: skip
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "podIP": HOST, "podIPs": [{"ip": HOST}], "conditions": [ready]}
    kubectl.create(pod)
    kubectl("patch", "pod", _POOL, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def _pool(kubectl: Kubectl, ports: Sequence[int]) -> None:
    """The pool that the picker serves; each port of its pod is an endpoint."""
    spec = {
        "selector": {"matchLabels": _LABEL},
        "targetPorts": [{"number": port} for port in ports],
        "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
    }
    pool = {"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": _POOL}}
    kubectl.create({**pool, "spec": spec})


def _command(picker: Path, made: Plane, kubeconfig: Path) -> Command:
    ports = made.router_ports
    options = {
        "pool-name": _POOL,
        "pool-namespace": "default",
        "grpc-port": ports.grpc,
        "metrics-port": ports.admin,
        "grpc-health-port": ports.exchange,
        "secure-serving": "false",
        "metrics-endpoint-auth": "false",
        "tracing": "false",
        "enable-pprof": "false",
        "v": "0",
        "config-text": _configuration(),
    }
    argv = [str(picker), *(f"--{name}={value}" for name, value in options.items())]
    return Command("endpoint-picker", argv, {"KUBECONFIG": str(kubeconfig)})


def _configuration() -> str:
    weighted = [{"pluginRef": name, "weight": weight} for name, weight in _SCORERS.items()]
    return json.dumps({
        "apiVersion": "inference.networking.x-k8s.io/v1alpha1", "kind": "EndpointPickerConfig",
        "plugins": [{"type": name} for name in _SCORERS],
        "schedulingProfiles": [{"name": "default", "plugins": weighted}],
    })  # fmt: skip


def _ask_the_picker(document: dict[str, Any]) -> None:
    """It must see the whole request, and hears of the answer's head; more it does not need to choose."""
    behave_like("full duplex requests", document)
    ext_proc(document)["processing_mode"]["response_trailer_mode"] = "SKIP"
    document["static_resources"]["clusters"][1].pop("health_checks")  # it answers those on a port of its own


def _chooses(made: Plane) -> bool:
    before = made.unplanned()
    return run(made.urls[0], Load(2_000, 1, seconds=1)).failed == 0 and made.unplanned() == before
