"""A team that keeps its fleet in git: a repository, the namespace that Flux keeps, the operator that looks after it.

Inputs: Flux, a namespace, an operator's process. Outputs: commits as a person makes them with `kvplan export`, and
what the cluster makes of them. The fleet is the operator's sample under the policy Approve; there are no routers, so
that every table counts as acknowledged.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from e2e.gitops.audit import Write, writes
from e2e.gitops.flux import Flux
from e2e.gitops.repository import Repository
from e2e.gitops.sync import Sync
from e2e.harness.kubectl import Manifest
from e2e.operator.operator_process import FLEET, SAMPLE, Operator

_NEVER_SECONDS = 86_400
"""Only changes are planned anew: a better plan that comes up by itself would be a write at rest."""
_FLEET_FILE, _REST_FILE = "fleet.yaml", "engines-and-classes.yaml"
KEPT, REPLACED = "plans/{name}.yaml", "plan.yaml"
"""Where plans are committed: each in a file of its own, which stays, or the last one alone."""


@dataclass(frozen=True)
class Accepted:
    """A plan that git accepts.

    Attributes:
        name: of the RoutingPlan.
        digest: as in `spec.acceptedPlan`.
    """

    name: str
    digest: str


class Team:
    """One team.

    Attributes:
        repository: what it writes.
        sync: what Flux makes of it.
        operator: that looks after the namespace.
    """

    def __init__(
        self, flux: Flux, operator: Operator, *, plan_file: str = KEPT, interval: str = "1h", load: str = "2s"
    ) -> None:
        """Push the fleet without an accepted plan, let Flux follow, and wait until it calls that healthy.

        Args:
            flux: running.
            operator: of the namespace.
            plan_file: of an accepted plan.
            interval: between two looks of Flux that nobody asks for.
            load: how long an engine takes to be Ready.
        """
        self.operator, self._cluster, self._plan_file = operator, flux.cluster, plan_file
        self.repository: Repository = flux.repository(operator.namespace)
        self._fleet, *self._rest = documents(load)
        self._fleet["spec"] |= {"planPolicy": {"mode": "Approve"}, "replan": {"intervalSeconds": _NEVER_SECONDS}}
        self._write()
        self.repository.push("A fleet and its classes")
        self.sync: Sync = flux.follow(self.repository, operator.namespace, interval)
        self.sync.wait_ready()

    # ---- what a person commits

    def price_idle_gpus(self, weight: int) -> None:
        """Commit what an idle GPU costs per second: with a price, a plan with fewer GPUs is worth a change."""
        self._fleet["spec"]["objective"] = {"idleGpuSecondWeight": weight}
        self._write()
        self.repository.push(f"An idle GPU costs {weight} per second")
        self.sync.now()

    def accept_candidate(self) -> Accepted:
        """Accept the plan that waits."""
        self.operator.wait_for_candidate()
        return self.accept(self.fleet()["status"]["candidatePlan"])

    def accept(self, reference: Mapping[str, Any]) -> Accepted:
        """Export a plan, commit it with its digest, and let Flux fetch that."""
        accepted = Accepted(reference["name"], reference["digest"])
        exported = self.kvplan("export", accepted.name)
        exported.check_returncode()
        self._fleet["spec"]["acceptedPlan"] = {"digest": accepted.digest}
        self.repository.write(self._plan_file.format(name=accepted.name), yaml.safe_load(exported.stdout))
        self._write()
        self.repository.push(f"Accept {accepted.name}")
        self.sync.request()
        return accepted

    def drop_fleet(self, accepted: Accepted) -> None:
        """Commit that there is no fleet and no plan any more; classes and the engines' template stay."""
        self.repository.remove(_FLEET_FILE)
        self.repository.remove(self._plan_file.format(name=accepted.name))
        self.repository.push("No fleet any more")
        self.sync.request()

    # ---- what the cluster says

    def fleet(self) -> dict[str, Any]:
        """The fleet as the API server has it."""
        return self.operator.get("fleet", FLEET)

    def ready(self) -> tuple[str, str]:
        """Status and reason of the fleet's Ready."""
        condition = self._ready()
        return condition["status"], condition["reason"]

    def ready_since(self) -> str:
        """When the fleet's Ready turned last, RFC 3339."""
        return str(self._ready()["lastTransitionTime"])

    def engines(self) -> Mapping[str, Any]:
        """Specs of the engine Deployments by name."""
        return {item["metadata"]["name"]: item["spec"] for item in self.operator.get("deployments")["items"]}

    def owned(self) -> set[str]:
        """What the fleet owns, as kubectl names it."""
        found = self.operator.get("routingplans.kvplan.dev,configmaps")["items"]
        uid = self.fleet()["metadata"]["uid"]
        return {_title(item) for item in found if uid in _owners(item)}

    def pods(self) -> set[str]:
        """Uids of the engines' pods."""
        return {pod["metadata"]["uid"] for pod in self.operator.get("pods")["items"]}

    def in_force(self) -> tuple[Accepted | None, tuple[str, str]]:
        """The plan that the fleet calls current, and status and reason of its Ready."""
        current = self.fleet()["status"].get("currentPlan")
        return None if current is None else Accepted(**current), self.ready()

    def kvplan(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run `kvplan` on the namespace."""
        place = ("--namespace", self.operator.namespace, "--kubeconfig", str(self._cluster.kubeconfig))
        argv = [sys.executable, "-m", "kvplan_cli", *arguments, *place]
        return subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "COLUMNS": "500"}, check=False)

    def edit(self, spec: Mapping[str, Any], manager: str = "kubectl-edit") -> None:
        """Change the fleet by hand."""
        place = (f"--namespace={self.operator.namespace}", f"--field-manager={manager}", "--type=merge")
        self._cluster.kubectl("patch", "fleet", FLEET, *place, "--patch", json.dumps({"spec": dict(spec)}))

    def writes_since(self, start: int) -> list[Write]:
        """All writes to the namespace since a position in the audit log."""
        return list(writes(self._cluster.plane.audit_log, start, self.operator.namespace))

    def _ready(self) -> Mapping[str, Any]:
        conditions = self.fleet()["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == "Ready")

    def _write(self) -> None:
        self.repository.write(_FLEET_FILE, self._fleet)
        self.repository.write(_REST_FILE, *self._rest)


def documents(load: str = "") -> list[Manifest]:
    """The sample: the fleet first; its engines take so long to load, for example `3s`."""
    found: list[Manifest] = list(yaml.safe_load_all(SAMPLE.read_text()))
    if load:
        template = next(item for item in found if item["kind"] == "PodTemplate")
        template["template"]["metadata"]["annotations"] = {"bed.kvplan.dev/load": load}
    return sorted(found, key=lambda item: item["kind"] != "ServingFleet")


def _title(item: Manifest) -> str:
    kinds = {"RoutingPlan": "routingplan.kvplan.dev", "ConfigMap": "configmap"}
    return f"{kinds[item['kind']]}/{item['metadata']['name']}"


def _owners(item: Manifest) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}
