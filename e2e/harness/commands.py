"""The command lines of the control plane: what each component is started with, and why.

Inputs: files, ports and the certificate authority of one run. Outputs: commands. It starts nothing. Everything binds
127.0.0.1.
"""

from dataclasses import dataclass
from pathlib import Path

from e2e.harness.assets import binary
from e2e.harness.paths import E2E
from e2e.harness.pki import Authority
from e2e.harness.process import Command

HOST = "127.0.0.1"
SERVICE_CIDR = "10.96.0.0/16"
_FIRST_SERVICE_ADDRESS = "10.96.0.1"
_AUDIT_POLICY = E2E / "harness" / "audit-policy.yaml"


@dataclass(frozen=True)
class Ports:
    """TCP ports of one control plane on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int


def etcd(data: Path, ports: Ports) -> Command:
    """A single member whose data goes with the run: nothing is synced to disk."""
    client, peer = f"http://{HOST}:{ports.etcd}", f"http://{HOST}:{ports.etcd_peer}"
    argv = [
        str(binary("etcd")),
        f"--data-dir={data}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]
    return Command("etcd", argv, remove=[data])


def api_server(authority: Authority, ports: Ports, audit_log: Path) -> Command:
    """RBAC and the node authorizer on, every request in the audit log, no endpoint of itself in the cluster."""
    server = authority.server("kube-apiserver", _FIRST_SERVICE_ADDRESS)
    service_accounts = authority.service_account_key()
    argv = [
        str(binary("kube-apiserver")),
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={ports.api_server}",
        "--endpoint-reconciler-type=none",
        f"--etcd-servers=http://{HOST}:{ports.etcd}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={authority.certificate}",
        f"--tls-cert-file={server}",
        f"--tls-private-key-file={server}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={service_accounts}",
        f"--service-account-key-file={service_accounts}",
        f"--audit-policy-file={_AUDIT_POLICY}",
        f"--audit-log-path={audit_log}",
        # Without this the server waits a minute for its endpoints to be withdrawn from load balancers.
        "--shutdown-delay-duration=0s",
    ]
    return Command("kube-apiserver", argv)


def controller_manager(authority: Authority, ports: Ports, kubeconfig: Path) -> Command:
    """Every controller under a service account of its own, so that RBAC holds for the built-in ones too."""
    key = authority.directory / "service-account.key"
    argv = [
        str(binary("kube-controller-manager")),
        f"--secure-port={ports.controller_manager}",
        "--use-service-account-credentials",
        f"--root-ca-file={authority.certificate}",
        f"--service-account-private-key-file={key}",
        *_client_flags(authority, "kube-controller-manager", kubeconfig),
    ]
    return Command("kube-controller-manager", argv)


def scheduler(authority: Authority, ports: Ports, kubeconfig: Path) -> Command:
    """The default profile: what a cluster's scheduler does with GPU requests, taints and affinity."""
    argv = [
        str(binary("kube-scheduler")),
        f"--secure-port={ports.scheduler}",
        *_client_flags(authority, "kube-scheduler", kubeconfig),
    ]
    return Command("kube-scheduler", argv)


def _client_flags(authority: Authority, component: str, kubeconfig: Path) -> list[str]:
    server = authority.server(component)
    return [
        f"--bind-address={HOST}",
        f"--tls-cert-file={server}",
        f"--tls-private-key-file={server}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
    ]
