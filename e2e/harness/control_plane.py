"""Start and stop a real control plane: etcd, API server, controller-manager and scheduler on 127.0.0.1.

Inputs: a directory of the run. Outputs: an admin kubeconfig, and kubeconfigs for further users. It is ready when the
API server and both others say so and the default service account is there, without which no pod can be created.
"""

import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.harness import commands, kubeconfig
from e2e.harness.commands import HOST, Ports
from e2e.harness.paths import memory_directory
from e2e.harness.pki import Authority
from e2e.harness.ports import PortLease
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers, until

_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlane:
    """One control plane.

    Attributes:
        server: URL of the API server.
        authority: signs the certificates of this cluster.
        kubeconfig: of a user in `system:masters`.
        audit_log: JSON lines, one per answered request; the control plane's own are left out.
        etcd, api_server, controller_manager, scheduler: the processes, to be stopped, frozen and started again.
    """

    def __init__(self, directory: Path, ports: PortLease) -> None:
        self.directory = directory
        self.logs = directory / "logs"
        self.logs.mkdir()
        self.audit_log = self.logs / "audit.jsonl"
        self.authority = Authority(directory / "pki")
        self._ports = Ports(*(ports.take() for _ in range(5)))
        self.server = f"https://{HOST}:{self._ports.api_server}"
        self._admin = self.authority.client("bed-admin", "system:masters")
        self.kubeconfig = self.identity("bed-admin", "system:masters")
        self._stack = ExitStack()
        self._make_processes()

    def _make_processes(self) -> None:
        self._data = (memory_directory() or self.directory) / f"{self.directory.name}-etcd"
        self.etcd = self._process(commands.etcd(self._data, self._ports))
        self.api_server = self._process(commands.api_server(self.authority, self._ports, self.audit_log))
        manager = self.identity("system:kube-controller-manager")
        self.controller_manager = self._process(commands.controller_manager(self.authority, self._ports, manager))
        scheduler = self.identity("system:kube-scheduler")
        self.scheduler = self._process(commands.scheduler(self.authority, self._ports, scheduler))

    def identity(self, user: str, *groups: str) -> Path:
        """Write a kubeconfig for a user in these groups and return its path; RBAC says what it may do."""
        client = self.authority.client(user, *groups)
        file = self.directory / f"{client.stem}.kubeconfig"
        return kubeconfig.with_certificate(file, self.server, self.authority.certificate, client)

    def wait_for_api_server(self) -> None:
        """Return when the API server answers `/readyz`; after `api_server.start()`."""
        until(lambda: self._gets("/readyz"), "kube-apiserver ready", self.api_server)

    def __enter__(self) -> Self:
        """Start all components and wait until a pod could be created and scheduled."""
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all components, the last one started first."""
        self._stack.close()

    def _start(self) -> None:
        self._stack.callback(shutil.rmtree, self._data, ignore_errors=True)
        self._run(self.etcd)
        until(lambda: answers(f"http://{HOST}:{self._ports.etcd}/readyz"), "etcd ready", self.etcd)
        self._run(self.api_server)
        self.wait_for_api_server()
        self._run(self.controller_manager)
        self._run(self.scheduler)
        manager, scheduler = self._ports.controller_manager, self._ports.scheduler
        until(lambda: self._healthy(manager), "kube-controller-manager healthy", self.controller_manager)
        until(lambda: self._healthy(scheduler), "kube-scheduler healthy", self.scheduler)
        until(lambda: self._gets(_DEFAULT_ACCOUNT), "default service account", self.controller_manager)

    def _process(self, command: Command) -> Process:
        return Process(command, self.logs)

    def _run(self, process: Process) -> None:
        self._stack.callback(process.stop)
        process.start()

    def _gets(self, path: str) -> bool:
        return answers(f"{self.server}{path}", self.authority.certificate, self._admin)

    def _healthy(self, port: int) -> bool:
        return answers(f"https://{HOST}:{port}/healthz", self.authority.certificate)
