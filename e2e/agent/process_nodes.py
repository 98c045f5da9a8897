"""Process nodes for tests: start an agent on a cluster and wait until its node is Ready.

Inputs: a cluster, a node's description. Outputs: the agent's process, which ends with the cluster. The agent has the
rights of a kubelet and no more: the node authorizer lets it read what its own pods refer to.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.errors import BedError, KubectlFailed
from e2e.harness.kubectl import Manifest
from e2e.harness.paths import REPOSITORY
from e2e.harness.process import Command, Process
from e2e.harness.simulated_nodes import NODE_KIND_LABEL, SimulatedNode

PROCESS = "process"


@dataclass(frozen=True)
class ProcessNode:
    """A node whose pods run for real.

    Attributes:
        node: name, GPUs, labels and taints, as for a simulated one.
        images: table of images, by default the agent's own.
        back_off_scale: factor on the pauses before restarts; 1 is the kubelet's.
    """

    node: SimulatedNode
    images: Path | None = None
    back_off_scale: float = 1.0

    def manifest(self) -> Manifest:
        """Return the Node as the agent registers it."""
        labels = {**self.node.labels, NODE_KIND_LABEL: PROCESS}
        return replace(self.node, labels=labels).manifest()


def start(cluster: Cluster, described: ProcessNode) -> Process:
    """Start the node's agent and wait until the node is Ready.

    Raises:
        ProcessDied, NotReady: when it does not get ready.
    """
    name = described.node.name
    directory = cluster.directory / f"agent-{name}"
    directory.mkdir(mode=0o700)
    (directory / "node.yaml").write_text(yaml.safe_dump(described.manifest()))
    command = _command(described, _kubeconfig(cluster, name), directory, cluster.logs / name)
    return cluster.run(command, lambda: is_ready(cluster, name))


def is_ready(cluster: Cluster, name: str) -> bool:
    """Return whether there is a node of this name and it is Ready."""
    try:
        node = cluster.kubectl.get("node", name)
    except KubectlFailed:
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", []))


def _command(described: ProcessNode, kubeconfig: Path, directory: Path, logs: Path) -> Command:
    pods = directory / "pods"
    argv = [sys.executable, "-m", "e2e.agent", "--kubeconfig", str(kubeconfig), "--node", str(directory / "node.yaml")]
    argv += ["--root", str(pods), "--logs", str(logs), "--back-off-scale", str(described.back_off_scale)]
    if described.images:
        argv += ["--images", str(described.images)]
    environment = {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    return Command(f"agent-{described.node.name}", argv, environment, remove=[pods])


def _kubeconfig(cluster: Cluster, name: str) -> Path:
    try:
        return cluster.plane.identity(f"system:node:{name}", "system:nodes")
    except BedError:  # the caller's own cluster: nobody there signs a node's certificate for us
        return cluster.kubeconfig
