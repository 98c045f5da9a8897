"""GPU nodes that kwok simulates: what they look like, and the kwok process that keeps them alive.

Inputs: node descriptions and stage files. Outputs: Node manifests, kwok's command and its RBAC. The labels are those
that the kubelet and NVIDIA's GPU feature discovery write. Pods on these nodes run nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.harness.assets import binary
from e2e.harness.commands import HOST
from e2e.harness.kubectl import Manifest
from e2e.harness.paths import E2E, STAGES
from e2e.harness.process import Command

NODE_KIND_LABEL = "bed.kvplan.dev/node"
SIMULATED = "simulated"
LEASE_SECONDS = 40
KWOK_USER = "system:kwok"
KWOK_RBAC = E2E / "nodes" / "kwok-rbac.yaml"


@dataclass(frozen=True)
class SimulatedNode:
    """A node with GPUs.

    Attributes:
        name: of the node and its hostname.
        gpus: number of `gpu_resource` that it offers.
        product: value of `nvidia.com/gpu.product`.
        memory_mebibytes: of one GPU.
        gpu_resource: the extended resource, such as `nvidia.com/mig-3g.71gb` for MIG.
        labels: further labels, or other values of the usual ones.
        taints: as in a Node's spec.
    """

    name: str
    gpus: int = 8
    product: str = "NVIDIA-H200"
    memory_mebibytes: int = 143_771
    gpu_resource: str = "nvidia.com/gpu"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()

    def manifest(self) -> Manifest:
        """Return the Node; its allocatable holds from its creation."""
        resources = {"cpu": "190", "memory": "2000Gi", "pods": "110", self.gpu_resource: str(self.gpus)}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {**self._usual_labels(), **self.labels}},
            "spec": {"taints": [dict(taint) for taint in self.taints]},
            "status": {"allocatable": resources, "capacity": resources},
        }

    def _usual_labels(self) -> dict[str, str]:
        return {
            NODE_KIND_LABEL: SIMULATED,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kvplan.dev/pool": "serving",
            "nvidia.com/gpu.count": str(self.gpus),
            "nvidia.com/gpu.memory": str(self.memory_mebibytes),
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": self.product,
        }


def sample_nodes(count: int = 3) -> list[SimulatedNode]:
    """Return the bed's sample: nodes of eight H200 GPUs."""
    return [SimulatedNode(f"gpu-node-{number}") for number in range(1, count + 1)]


def kwok(kubeconfig: Path, port: int, home: Path, extra_stages: Sequence[Path] = ()) -> Command:
    """Return kwok's command: the basic stages first, then a scenario's own.

    Args:
        kubeconfig: of the user `KWOK_USER`.
        port: of kwok's own server.
        home: directory that kwok may use instead of the caller's home.
        extra_stages: stage files of a scenario.
    """
    argv = [
        str(binary("kwok")),
        f"--kubeconfig={kubeconfig}",
        f"--manage-nodes-with-label-selector={NODE_KIND_LABEL}={SIMULATED}",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        f"--node-ip={HOST}",
        f"--server-address={HOST}:{port}",
    ]
    for stage in [*sorted(STAGES.glob("*.yaml")), *extra_stages]:
        argv += ["-c", str(stage)]
    return Command("kwok", argv, environment={"HOME": str(home)})
