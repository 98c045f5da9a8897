"""The bed: a control plane of its own with simulated GPU nodes, or a cluster the caller brings.

Inputs: node descriptions, stage files, `KVPLAN_E2E_KUBECONFIG`. Outputs: a kubectl, further processes that end with
the cluster, Prometheus. Logs go with a success and stay after a failure. Nothing it starts outlives this process.
"""

import os
import shutil
import sys
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.harness import prometheus, simulated_nodes
from e2e.harness.commands import HOST
from e2e.harness.control_plane import ControlPlane
from e2e.harness.errors import BedError
from e2e.harness.kubectl import Kubectl
from e2e.harness.paths import CRDS
from e2e.harness.ports import PortLease
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers, until
from e2e.harness.simulated_nodes import SimulatedNode

KUBECONFIG_VARIABLE = "KVPLAN_E2E_KUBECONFIG"


class Cluster:
    """One cluster to test against.

    Attributes:
        directory: of this run: kubeconfigs, certificates, logs.
        ports: free TCP ports, lent until the cluster ends.
        kubeconfig: of its administrator.
        kubectl: for its administrator.
    """

    def __init__(self, nodes: Iterable[SimulatedNode] = (), stages: Sequence[Path] = ()) -> None:
        self._nodes = list(nodes)
        self._stages = list(stages)
        self._failed = False
        self._plane: ControlPlane | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything and wait until the nodes are Ready."""
        self.directory = Path(tempfile.mkdtemp(prefix="kvplan-bed-"))
        self.ports = PortLease()
        self._stack.callback(self.ports.release)
        try:
            self._start()
        except BaseException:
            self.keep_logs()
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything; keep the logs when the block failed."""
        if kind is not None and not issubclass(kind, KeyboardInterrupt | SystemExit):
            self.keep_logs()
        self._end()

    @property
    def plane(self) -> ControlPlane:
        """The control plane's processes and certificates.

        Raises:
            BedError: when the cluster is the caller's own.
        """
        if self._plane is None:
            raise BedError(f"{KUBECONFIG_VARIABLE} names a cluster whose control plane is not ours to touch")
        return self._plane

    @property
    def logs(self) -> Path:
        """Where the processes of this run write."""
        return self.directory / "logs"

    def keep_logs(self) -> None:
        """Leave the logs behind when the cluster ends, as after a failed test."""
        self._failed = True

    def run(self, command: Command, ready: Callable[[], bool] | None = None, seconds: float = 60.0) -> Process:
        """Start a process that ends with the cluster, before those started earlier; wait until it is ready.

        Raises:
            ProcessDied, NotReady: when it does not get ready.
        """
        process = Process(command, self.logs)
        self._stack.callback(process.stop)
        process.start()
        if ready is not None:
            until(ready, f"{command.name} ready", process, seconds)
        return process

    def install_crds(self) -> None:
        """Apply the project's CRDs as a person would and wait until the API server serves them."""
        self.kubectl("apply", "-f", str(CRDS))
        self.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))

    def add_nodes(self, nodes: Iterable[SimulatedNode]) -> None:
        """Create simulated nodes and wait until they are Ready."""
        manifests = [node.manifest() for node in nodes]
        if not manifests:
            return
        names = [f"node/{manifest['metadata']['name']}" for manifest in manifests]
        self._leave_no_trace(*names)
        self.kubectl.create(*manifests)
        self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *names)

    def start_prometheus(self) -> str:
        """Start a Prometheus that scrapes this cluster's pods and return the URL of its API."""
        port, directory = self.ports.take(), self.directory / "prometheus"
        prometheus.configure(directory, self.plane.server, self.plane.authority.certificate, self.kubectl)
        url = f"http://{HOST}:{port}"
        self.run(prometheus.command(directory, port), lambda: answers(urllib.parse.urljoin(url, "/-/ready")))
        return url

    def _start(self) -> None:
        brought = os.environ.get(KUBECONFIG_VARIABLE)
        self.kubeconfig = Path(brought).absolute() if brought else self._start_plane()
        self.logs.mkdir(exist_ok=True)
        self.kubectl = Kubectl(self.kubeconfig, self.directory)
        self._start_kwok()
        self.add_nodes(self._nodes)

    def _start_plane(self) -> Path:
        self._plane = self._stack.enter_context(ControlPlane(self.directory, self.ports))
        return self._plane.kubeconfig

    def _start_kwok(self) -> None:
        self._leave_no_trace("-f", str(simulated_nodes.KWOK_RBAC))
        self.kubectl("apply", "-f", str(simulated_nodes.KWOK_RBAC))
        user = self._plane.identity(simulated_nodes.KWOK_USER) if self._plane else self.kubeconfig
        port = self.ports.take()
        command = simulated_nodes.kwok(user, port, self.directory, self._stages)
        self.run(command, lambda: answers(f"http://{HOST}:{port}/healthz"))

    def _leave_no_trace(self, *objects: str) -> None:
        """Delete the objects at the end from a cluster that goes on without us."""
        if self._plane is None:
            self._stack.callback(self.kubectl, "delete", "--ignore-not-found", *objects)

    def _end(self) -> None:
        self._stack.close()
        if self._failed:
            shutil.rmtree(self.directory / "pki", ignore_errors=True)
            print(f"logs of the cluster: {self.logs}", file=sys.stderr, flush=True)
        else:
            shutil.rmtree(self.directory)
