"""The operator as a process of its own, for one namespace, as a person would start it; and what tests ask of it.

Inputs: a cluster, a namespace. Outputs: a process, waits for conditions of the fleet, the operator's writes as the API
server's audit log tells of them.
"""

import json
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.commands import HOST
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers, until

SAMPLE = Path(__file__).with_name("samples") / "fleet.yaml"
FLEET = "chat"
SHORT_LEASE = {"LEASE_DURATION_SECONDS": "6", "LEASE_RENEW_SECONDS": "4", "LEASE_RETRY_SECONDS": "0.5"}
"""For tests of who leads: a standby takes over within seconds."""
LONG_LEASE = {"LEASE_DURATION_SECONDS": "300", "LEASE_RENEW_SECONDS": "200", "LEASE_RETRY_SECONDS": "2"}
"""For tests where nobody can renew a Lease for a while, and who leads is not the question."""
_AGENTS = ("kvplan", "kopf")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Write:
    """One write of the operator.

    Attributes:
        verb: as in RBAC.
        resource: plural, with the subresource after a slash.
        name: of the object.
        code: of the answer.
        user: who wrote.
    """

    verb: str
    resource: str
    name: str
    code: int
    user: str


class Operator:
    """An operator that looks after one namespace."""

    def __init__(
        self, cluster: Cluster, namespace: str, *arguments: str, name: str = "operator", **settings: str
    ) -> None:
        """Start it and wait until it is ready.

        Args:
            cluster: to run on.
            namespace: looked after.
            arguments: of the interpreter; none runs the operator's own command.
            name: in the name of its log file.
            settings: variables without their prefix.
        """
        self.cluster, self.namespace = cluster, namespace
        port = cluster.ports.take()
        variables = {
            "KUBECONFIG": str(cluster.kubeconfig),
            "LISTEN": f"{HOST}:{port}",
            "NAMESPACES": namespace,
            "LEASE_NAMESPACE": namespace,
            **settings,
        }
        environment = {f"KVPLAN_{name.upper()}": value for name, value in variables.items()}
        argv = [sys.executable, *(arguments or ("-m", "kvplan_operator.main"))]
        command = Command(f"{name}-{namespace}", argv, environment)
        self.url = f"http://{HOST}:{port}"
        self.process: Process = cluster.run(command, lambda: answers(f"{self.url}/readyz"))

    def apply_sample(self, load: str = "") -> None:
        """Apply the sample fleet; its engines take so long to load, for example ``3s``."""
        documents = list(yaml.safe_load_all(SAMPLE.read_text()))
        if load:
            template = next(item for item in documents if item["kind"] == "PodTemplate")
            template["template"]["metadata"]["annotations"] = {"bed.kvplan.dev/load": load}
        self.apply(*documents)

    def apply(self, *documents: dict[str, Any]) -> None:
        """Apply objects in its namespace."""
        self.cluster.kubectl.apply(*documents, options=[self._place])

    def get(self, *what: str) -> dict[str, Any]:
        """An object, or a list with ``items``."""
        return self.cluster.kubectl.get(*what, self._place)

    def accept(self, digest: str) -> None:
        """Accept a plan as git would."""
        self.change({"planPolicy": {"mode": "Approve"}, "acceptedPlan": {"digest": digest}})

    def change(self, spec: dict[str, Any]) -> None:
        """Change the fleet's spec."""
        patch = json.dumps({"spec": spec})
        self.cluster.kubectl("patch", "fleet", FLEET, self._place, "--type=merge", "--patch", patch)

    def delete(self, *what: str) -> None:
        """Delete objects and return when they are gone."""
        self.cluster.kubectl("delete", *what, self._place)

    def wait_gone(self, *what: str, seconds: int = 60) -> None:
        """Return when nothing of this is left."""
        until(lambda: not any(self._names(item) for item in what), f"no {', '.join(what)}", self.process, seconds)

    def metrics(self) -> str:
        """What it exports."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as response:  # noqa: S310 - our own process
            return str(response.read().decode())

    def wait_for(self, type_: str, reason: str, seconds: int = 60) -> None:
        """Return when a condition of the fleet has a reason."""
        path = f'{{.status.conditions[?(@.type=="{type_}")].reason}}'
        self._wait(f"fleet/{FLEET}", f"--for=jsonpath={path}={reason}", seconds)

    def wait_for_candidate(self, seconds: int = 60) -> None:
        """Return when the fleet's status names a plan that waits."""
        self._wait(f"fleet/{FLEET}", "--for=jsonpath={.status.candidatePlan.digest}", seconds)

    def wait_for_deployment(self, seconds: int = 60) -> None:
        """Return when a Deployment of the fleet exists."""
        self._wait("deployment", "--for=create", seconds, f"--selector=kvplan.dev/fleet={FLEET}")

    def leader(self) -> str:
        """Who holds the Lease."""
        return str(self.get("lease", "kvplan-operator")["spec"]["holderIdentity"])

    def wait_for_leader_other_than(self, holder: str, seconds: int = 60) -> None:
        """Return when somebody else holds the Lease."""
        self._wait("lease/kvplan-operator", "--for=create", seconds)
        until(lambda: self.leader() not in ("", holder), "another leader", self.process, seconds)

    def writes_since(self, start: int) -> Iterator[Write]:
        """Writes of the operator, Leases aside, in the audit log from a byte on."""
        with self.cluster.plane.audit_log.open("rb") as log:
            log.seek(start)
            for entry in map(json.loads, log):
                target = entry.get("objectRef", {})
                own = entry.get("userAgent", "").startswith(_AGENTS) and target.get("namespace") == self.namespace
                if own and entry["verb"] in _WRITES and target["resource"] != "leases":
                    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
                    code, user = entry["responseStatus"]["code"], entry["user"]["username"]
                    yield Write(entry["verb"], resource, target.get("name", ""), code, user)

    def audit_position(self) -> int:
        """The end of the audit log now."""
        return self.cluster.plane.audit_log.stat().st_size

    def _wait(self, what: str, condition: str, seconds: int, *more: str) -> None:
        self.cluster.kubectl("wait", what, condition, self._place, f"--timeout={seconds}s", *more)

    def _names(self, what: str) -> str:
        return self.cluster.kubectl("get", what, self._place, "--output=name", "--ignore-not-found").strip()

    @property
    def _place(self) -> str:
        return f"--namespace={self.namespace}"
