"""``kvplan`` against a cluster, and a fleet with two plans whose statuses a test sets itself.

A call runs the program in this process, which spares a second of imports; ``anywhere`` and ``start`` run the script.

No operator runs: what it would write, tests write by kubectl, so that every state of a fleet can be had at once.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from e2e.harness.cluster import Cluster
from e2e.harness.errors import BedError
from e2e.operator.operator_process import FLEET, SAMPLE
from kvplan_cli.app import app
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.digest import plan_digest

PROGRAM = Path(sys.executable).with_name("kvplan")
SINCE = "2026-01-31T12:00:00Z"

Object = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """How a run ended."""

    code: int
    stdout: str
    stderr: str

    def error(self) -> str:
        """The one line that a refusal is told in.

        Raises:
            BedError: it was no refusal, or took more lines, or a traceback.
        """
        lines = [line for line in self.stderr.splitlines() if line.startswith("kvplan: ")]
        if self.code != 2 or len(lines) != 1 or "Traceback" in self.stderr:
            raise BedError(f"this is no refusal in one line: {self}")
        return lines[0]


class Kvplan:
    """The command, for one namespace of one cluster."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_COLOR": "1", "COLUMNS": "240"}

    def __call__(self, *arguments: str) -> Done:
        """Run it to its end, in the namespace."""
        runner = CliRunner(env=self.environment)
        done = runner.invoke(app, [*arguments, f"--namespace={self.namespace}"], catch_exceptions=False)
        return Done(done.exit_code, done.stdout, done.stderr)

    def anywhere(self, *arguments: str, **environment: str) -> Done:
        """Run the script without the namespace option, with other variables."""
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run the script beside the test."""
        return subprocess.Popen(
            [str(PROGRAM), *arguments, f"--namespace={self.namespace}"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


class Stage:
    """The sample fleet with two plans: ``large`` may use all GPUs, ``small`` sixteen of them.

    Attributes:
        kvplan: the command for its namespace.
        large: digest and name of the first plan.
        small: of the second.
    """

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        """Apply the fleet, and make its plans with the command itself."""
        self.cluster, self.namespace = cluster, namespace
        self.kvplan = Kvplan(cluster, namespace)
        self._objectives: dict[str, Object] = {}
        documents = list(yaml.safe_load_all(SAMPLE.read_text()))
        cluster.kubectl.apply(*documents, options=[self.place])
        self.large = self._make_plan()
        self.patch_fleet({"nodes": {"maxGpus": 16}})
        self.small = self._make_plan()
        self.patch_fleet({"nodes": {"maxGpus": None}})

    @property
    def place(self) -> str:
        """kubectl's option for its namespace."""
        return f"--namespace={self.namespace}"

    def get(self, *what: str) -> Object:
        """An object, or a list with ``items``."""
        return self.cluster.kubectl.get(*what, self.place)

    def groups(self, plan: tuple[str, str]) -> Counter[tuple[str, ...]]:
        """A plan's groups: the configuration of each, and its nodes."""
        found = self.get("rplan", plan[1])["spec"]["groups"]
        return Counter((kind["configuration"], *place["stages"]) for kind in found for place in kind["placements"])

    def kinds(self, plan: tuple[str, str]) -> Counter[str]:
        """How many groups a plan runs, by configuration."""
        return Counter(name for name, *_ in self.groups(plan).elements())

    def gpus(self, plan: tuple[str, str]) -> int:
        """GPUs that a plan uses."""
        kinds = self.get("fleet", FLEET)["spec"]["configurations"]
        sizes = {kind["name"]: kind["tensorParallel"] * kind.get("pipelineParallel", 1) for kind in kinds}
        return sum(sizes[name] * groups for name, groups in self.kinds(plan).items())

    def accepted(self) -> str | None:
        """The digest that is accepted."""
        digest: str | None = self.get("fleet", FLEET)["spec"]["acceptedPlan"].get("digest")
        return digest

    def reset(self) -> None:
        """``large`` is in force, ``small`` waits, the policy is Approve, nothing is accepted."""
        self.patch_fleet({"acceptedPlan": None, "planPolicy": {"mode": "Approve"}, "suspend": False})
        waiting = f"True/AwaitingApproval/RoutingPlan {self.small[1]} is proposed"
        self.say_fleet(self.large, self.small, Ready=waiting, Reconciling="False", Stalled="False")
        self.say_plan(self.large, Proposed="True", Applied="True")
        self.say_plan(self.small, Proposed="True")

    def patch_fleet(self, spec: Object) -> None:
        """Change the fleet's spec as a person."""
        self._patch("fleet", FLEET, {"spec": spec})

    def say_fleet(
        self,
        current: tuple[str, str] | None = None,
        candidate: tuple[str, str] | None = None,
        **conditions: str,
    ) -> None:
        """Write the fleet's status as the operator would; conditions are ``Ready="True"``."""
        generation = self.get("fleet", FLEET)["metadata"]["generation"]
        status = {
            "observedGeneration": generation,
            "currentPlan": _reference(current),
            "candidatePlan": _reference(candidate),
            "conditions": [_condition(type_, value) for type_, value in conditions.items()],
        }
        self._patch("fleet", FLEET, {"status": status}, "--subresource=status")

    def say_plan(self, plan: tuple[str, str], **conditions: str) -> None:
        """Write a plan's status as the operator would."""
        status = {
            "objective": self._objectives[plan[1]],
            "conditions": [_condition(type_, value) for type_, value in conditions.items()],
        }
        self._patch("rplan", plan[1], {"status": status}, "--subresource=status")

    def own_acceptance(self, manager: str, digest: str) -> None:
        """Let another field manager own the accepted digest, as git does."""
        metadata = {"name": FLEET, "namespace": self.namespace}
        document = {"apiVersion": "kvplan.dev/v1alpha1", "kind": "ServingFleet", "metadata": metadata}
        accepted = document | {"spec": {"acceptedPlan": {"digest": digest}}}
        options = ["--server-side", f"--field-manager={manager}", "--force-conflicts"]
        self.cluster.kubectl.apply(accepted, options=options)

    def _make_plan(self) -> tuple[str, str]:
        done = self.kvplan("plan", "--output=yaml")
        if done.code != 0:
            raise BedError(f"the sample fleet cannot be planned: {done}")
        document = yaml.safe_load(done.stdout)
        plan = RoutingPlan.model_validate(document)
        self._objectives[plan.metadata.name] = document.pop("status")["objective"]
        self.cluster.kubectl.apply(document)
        return plan_digest(plan.spec), plan.metadata.name

    def _patch(self, kind: str, name: str, patch: Object, *options: str) -> None:
        self.cluster.kubectl("patch", kind, name, self.place, "--type=merge", "--patch", json.dumps(patch), *options)


def _reference(plan: tuple[str, str] | None) -> Object | None:
    return None if plan is None else {"digest": plan[0], "name": plan[1]}


def _condition(type_: str, status: str) -> Object:
    """``"True"``, or ``"False/Reason/message"``."""
    value, _, rest = status.partition("/")
    reason, _, message = rest.partition("/")
    told = {"reason": reason or "AsPlanned", "message": message or "as planned"}
    return {"type": type_, "status": value, "lastTransitionTime": SINCE, **told}


def engine_made_by_kvplan(kind: str, fleet: str, name: str = "") -> Object:
    """A Deployment, or a file of flags, as the operator makes it for a fleet."""
    known = name or f"{fleet}-{'tp1' if kind == 'Deployment' else 'engine'}"
    labels = {"kvplan.dev/fleet": fleet, "kvplan.dev/set": known, "app.kubernetes.io/component": "engine-config"}
    document: Object = {"kind": kind, "metadata": {"name": known, "labels": labels}}
    if kind == "ConfigMap":
        return document | {"apiVersion": "v1", "data": {}}
    template = {"metadata": {"labels": {"a": known}}, "spec": {"containers": [{"name": "vllm", "image": "vllm"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": known}}, "template": template}
    return document | {"apiVersion": "apps/v1", "spec": spec}


def vllm_deployment(name: str, *words: str, gpus: int = 1, **pod: Any) -> Object:
    """A Deployment that a team runs; keywords add to the pod's spec."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "vllm", "image": "vllm/vllm-openai:v0.32.0", "command": list(words), "resources": resources}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
