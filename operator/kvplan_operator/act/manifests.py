"""Created engine sets, rendered: one object per configuration × nodes × content of the pod template.

Inputs: a plan, the fleet, the user's template, placements. Output: ``TargetSet`` values with whole manifests; equal
inputs give equal bytes, and A→B→A the first names again. The name ends in a digest of fleet, configuration, nodes and
pod template: other flags, another image or template are another object. Objects have no owner: deleting a fleet leaves
its engines serving. The plan's name is a label of the object and not of the pods, whose template must not move with a
plan that changes nothing about them. Pure.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from kvplan_operator.act import config_file
from kvplan_operator.act.engine_sets import SetKind, TargetSet
from kvplan_operator.act.engine_settings import engine_settings
from kvplan_operator.act.placement import Stages
from kvplan_operator.act.pod_template import engine_container, engine_template
from kvplan_operator.act.refusals import refused
from kvplan_operator.act.worker_sets import worker_set_spec
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_engine import Configuration
from kvplan_operator.api.fleet_enums import TemplateKind, WriteMode
from kvplan_operator.api.labels import CONFIGURATION_LABEL, FLEET_LABEL, NODE_ANNOTATION, PLAN_LABEL, SET_LABEL
from kvplan_operator.api.routing_plan import Group
from kvplan_operator.model.pods import Object, part

_DIGITS = 10
_FLEET_CHARACTERS, _CONFIGURATION_CHARACTERS = 20, 14
"""Long enough to read; with the digest a name has at most 46 characters, so that pods show it whole."""


@dataclass(frozen=True, eq=False)
class Renderer:
    """Renders the created sets of one plan.

    Attributes:
        fleet: the fleet.
        plan_name: name of the RoutingPlan, for labels.
        template: the object that ``engine.templateRef`` names.
        worker_sets_served: whether groups may span nodes.
    """

    fleet: ServingFleet
    plan_name: str
    template: Object | None
    worker_sets_served: bool

    def sets(self, group: Group, configuration: Configuration, stages: tuple[Stages, ...]) -> tuple[TargetSet, ...]:
        """The sets of one configuration, by nodes.

        Raises:
            RolloutRefused: no template, one that cannot be used, or groups across nodes without LeaderWorkerSets.
        """
        return tuple(
            self._set(group, configuration, where, replicas) for where, replicas in sorted(Counter(stages).items())
        )

    def _set(self, group: Group, configuration: Configuration, stages: Stages, replicas: int) -> TargetSet:
        nodes, stages_per_pod = pods_of(stages)
        kind = SetKind.DEPLOYMENT if len(nodes) == 1 else SetKind.WORKER_SET
        if kind is SetKind.WORKER_SET and not self.worker_sets_served:
            raise refused(
                ConditionReason.NEEDS_LEADER_WORKER_SET,
                f"configuration {configuration.name}: a group spans {', '.join(dict.fromkeys(nodes))}: install "
                "LeaderWorkerSet, or set spanNodes to false",
            )
        gpus = configuration.tensor_parallel * stages_per_pod
        labels = {FLEET_LABEL: self.fleet.metadata.name, CONFIGURATION_LABEL: configuration.name}
        spec, file = self._spec(kind, group, nodes, gpus, labels)
        name = set_name(self.fleet.metadata.name, configuration.name, {"nodes": nodes, "spec": spec})
        manifest = self._manifest(kind, name, labels, nodes, _named(kind, spec, name, replicas))
        return TargetSet(kind, name, configuration.name, nodes, gpus, replicas, manifest, file)

    def _spec(
        self, kind: SetKind, group: Group, nodes: tuple[str, ...], gpus: int, labels: Mapping[str, str]
    ) -> tuple[dict[str, Any], Object | None]:
        """The object's spec without name and replicas, and the file of flags."""
        base, subject = base_template(self.template, self.fleet)
        image = str(engine_container(base, self.fleet, subject).get("image") or "")
        flags = engine_settings(self.fleet, group, image).flags
        in_file = self.fleet.spec.engine.write_mode is WriteMode.CONFIG_FILE
        file = config_file.config_map(self.fleet, flags) if in_file else None
        template = engine_template(
            base, self.fleet, flags, gpus=gpus, nodes=tuple(dict.fromkeys(nodes)), labels=labels,
            config_map=None if file is None else file["metadata"]["name"], subject=subject,
        )  # fmt: skip
        if kind is SetKind.WORKER_SET:
            return worker_set_spec(template, self.fleet.spec.engine.container, nodes), file
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        return {"strategy": strategy, "revisionHistoryLimit": 0, "template": template}, file

    def _manifest(
        self, kind: SetKind, name: str, labels: Mapping[str, str], nodes: tuple[str, ...], spec: Mapping[str, Any]
    ) -> dict[str, Any]:
        api = "apps/v1" if kind is SetKind.DEPLOYMENT else "leaderworkerset.x-k8s.io/v1"
        metadata = {
            "name": name,
            "namespace": self.fleet.metadata.namespace,
            "labels": dict(labels) | {SET_LABEL: name, PLAN_LABEL: self.plan_name},
            "annotations": {NODE_ANNOTATION: ",".join(nodes)},
        }
        return {"apiVersion": api, "kind": kind.value, "metadata": metadata, "spec": dict(spec)}


def pods_of(stages: Stages) -> tuple[tuple[str, ...], int]:
    """Node of each pod of a group, and the stages in one pod: as many as all its nodes can hold alike."""
    runs = [(node, len(list(run))) for node, run in groupby(stages)]
    if len({node for node, _ in runs}) == 1:
        return (stages[0],), len(stages)
    per_pod = math.gcd(*(length for _, length in runs))
    return tuple(node for node, length in runs for _ in range(length // per_pod)), per_pod


def set_name(fleet: str, configuration: str, content: Mapping[str, Any]) -> str:
    """``<fleet>-<configuration>-<digest>``, shortened before the digest."""
    text = json.dumps([fleet, configuration, content], sort_keys=True, separators=(",", ":"))
    told_apart = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    words = (fleet[:_FLEET_CHARACTERS].rstrip("-"), configuration[:_CONFIGURATION_CHARACTERS].rstrip("-"), told_apart)
    return "-".join(words)


def renamed(target: TargetSet, name: str) -> TargetSet:
    """A created set under another name, all else alike."""
    metadata = part(target.manifest, "metadata")
    labels = dict(part(metadata, "labels")) | {SET_LABEL: name}
    spec = _named(target.kind, part(target.manifest, "spec"), name, target.replicas)
    manifest = {**target.manifest, "metadata": {**metadata, "name": name, "labels": labels}, "spec": spec}
    return replace(target, name=name, manifest=manifest)


def base_template(template: Object | None, fleet: ServingFleet) -> tuple[Object, str]:
    """The pod template that engines are created from, and its name for messages.

    Raises:
        RolloutRefused: the fleet names none, or it does not exist.
    """
    reference = fleet.spec.engine.template_ref
    if reference is None:
        raise refused(
            ConditionReason.TEMPLATE_REFUSED,
            f"ServingFleet {fleet.metadata.name}: spec.engine.templateRef is absent: name a PodTemplate or Deployment "
            "to create engines from, or give every configuration a deployment to adopt",
        )
    subject = f"{reference.kind.value} {fleet.metadata.namespace}/{reference.name}"
    if template is None:
        raise refused(
            ConditionReason.TEMPLATE_REFUSED,
            f"{subject}: spec.engine.templateRef names it, and it does not exist: create it",
        )
    if reference.kind is TemplateKind.DEPLOYMENT:
        return part(part(template, "spec"), "template"), subject
    return part(template, "template"), subject


def _named(kind: SetKind, spec: Mapping[str, Any], name: str, replicas: int) -> dict[str, Any]:
    """The spec with replicas, selector and the set's own label on its pods."""
    if kind is SetKind.WORKER_SET:
        both = spec["leaderWorkerTemplate"]
        templates = {part_: _labelled(both[part_], name) for part_ in ("leaderTemplate", "workerTemplate")}
        return {**spec, "replicas": replicas, "leaderWorkerTemplate": {**both, **templates}}
    selector = {"matchLabels": {SET_LABEL: name}}
    return {**spec, "replicas": replicas, "selector": selector, "template": _labelled(spec["template"], name)}


def _labelled(template: Object, name: str) -> dict[str, Any]:
    metadata = dict(part(template, "metadata"))
    return {**template, "metadata": metadata | {"labels": {**part(metadata, "labels"), SET_LABEL: name}}}
