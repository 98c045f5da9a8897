"""One namespace that Flux keeps as a repository says: its GitRepository and its Kustomization.

Inputs: a cluster, a repository, a namespace. Outputs: what Flux says of both objects, and waits. The objects are in
Flux's own namespace, so that what Flux writes about itself is not taken for a write to the namespace that it keeps.
"""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from e2e.gitops.repository import BRANCH, Repository
from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest

NAMESPACE = "flux-system"
REQUEST = "reconcile.fluxcd.io/requestedAt"
_PLACE = f"--namespace={NAMESPACE}"
_requests = itertools.count(1)


class Sync:
    """What keeps a namespace."""

    def __init__(self, cluster: Cluster, repository: Repository, namespace: str) -> None:
        """Prepare.

        Args:
            cluster: that Flux runs on.
            repository: to follow.
            namespace: to keep; the objects have its name.
        """
        self._kubectl, self.repository, self.name = cluster.kubectl, repository, namespace

    def create(self, url: str, interval: str, more: Mapping[str, object]) -> None:
        """Create both objects.

        Args:
            url: of the repository.
            interval: between two looks that nobody asks for.
            more: fields of the Kustomization's spec, over the usual ones.
        """
        self._kubectl.apply(self._source(url, interval), self._kustomization(interval, more))

    def now(self) -> None:
        """Let Flux fetch and apply what is pushed, as `flux reconcile` does; return when it has, well or badly."""
        self.request()
        self.wait_handled()

    def request(self) -> None:
        """Let Flux fetch what is pushed; return when it has and was asked to apply it."""
        self._request("gitrepository")
        self._wait("gitrepository", f"jsonpath={{.status.artifact.revision}}={self.revision}")
        self._token = self._request("kustomization")

    def wait_handled(self, seconds: int = 120) -> None:
        """Return when the last request is dealt with, health checks included."""
        self._wait("kustomization", f"jsonpath={{.status.lastHandledReconcileAt}}={self._token}", seconds)

    def wait_ready(self, seconds: int = 120) -> None:
        """Return when what is pushed is applied and, by Flux's own checks, healthy."""
        self._wait("kustomization", f"jsonpath={{.status.lastAppliedRevision}}={self.revision}", seconds)
        self._wait("kustomization", "condition=Ready", seconds)

    def wait_checking(self, seconds: int = 60) -> None:
        """Return when what is pushed is applied and its health is being looked at."""
        self._wait("kustomization", f"jsonpath={{.status.lastAttemptedRevision}}={self.revision}", seconds)
        self.wait_reason("Progressing", "Healthy", seconds)

    def wait_reason(self, reason: str, type_: str = "Ready", seconds: int = 60) -> None:
        """Return when a condition of the Kustomization has a reason."""
        path = f'{{.status.conditions[?(@.type=="{type_}")].reason}}'
        self._wait("kustomization", f"jsonpath={path}={reason}", seconds)

    def said(self, type_: str = "Ready") -> tuple[str, str, str]:
        """Status, reason and message of a condition of the Kustomization."""
        condition = self._condition(type_)
        return condition["status"], condition["reason"], condition["message"]

    def ready_since(self) -> str:
        """When the Kustomization's Ready turned last, RFC 3339."""
        return str(self._condition("Ready")["lastTransitionTime"])

    def inventory(self) -> set[str]:
        """Names of the objects that Flux keeps in the namespace."""
        found = self._kubectl.get(f"kustomization/{self.name}", _PLACE)["status"]["inventory"]["entries"]
        return {entry["id"].split("_")[1] for entry in found}

    def delete(self) -> None:
        """Delete the Kustomization, and with it all that it keeps; then the source."""
        self._kubectl("delete", f"kustomization/{self.name}", _PLACE, "--ignore-not-found", "--timeout=60s")
        self._kubectl("delete", f"gitrepository/{self.name}", _PLACE, "--ignore-not-found", "--timeout=60s")

    @property
    def revision(self) -> str:
        """The pushed commit as Flux writes it."""
        return f"{BRANCH}@sha1:{self.repository.head}"

    def _condition(self, type_: str) -> Mapping[str, Any]:
        conditions = self._kubectl.get(f"kustomization/{self.name}", _PLACE)["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == type_)

    def _source(self, url: str, interval: str) -> Manifest:
        return {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"url": url, "ref": {"branch": BRANCH}, "interval": interval},
        }

    def _kustomization(self, interval: str, more: Mapping[str, object]) -> Manifest:
        return {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": self.name},
                "path": "./",
                "targetNamespace": self.name,
                "interval": interval,
                "retryInterval": "5s",
                "timeout": "90s",
                "prune": True,
                "wait": True,
                "deletionPolicy": "WaitForTermination",
                **more,
            },
        }

    def _request(self, kind: str) -> str:
        token = f"request-{next(_requests)}"
        patch = json.dumps({"metadata": {"annotations": {REQUEST: token}}})
        self._kubectl("patch", f"{kind}/{self.name}", _PLACE, "--type=merge", "--patch", patch)
        return token

    def _wait(self, kind: str, condition: str, seconds: int = 60) -> None:
        self._kubectl(
            "wait", f"{kind}/{self.name}", _PLACE, f"--for={condition}", f"--timeout={seconds}s", seconds=seconds + 30
        )
