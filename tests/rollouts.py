"""Builders for rollouts: a fleet that creates its engines, plans with placements, and the template they come from."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.common import ObjectMeta
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan, RoutingPlanSpec
from kvplan_operator.model.snapshot import ClusterView, Measured, Snapshot
from kvplan_operator.plan.digest import plan_name
from tests.planning import configuration, fleet, request_class

Object = dict[str, Any]
TOKENS_PER_GPU = 1_000

RULES = RolloutRules(min_available_milli=500, drain_timeout_seconds=600, deadline_seconds=7_200)

Groups = Mapping[str, Sequence[str | Sequence[str]]]
"""Node, or node of each stage, of every group by configuration."""


def rollout_fleet(*sizes: int, **spec: Any) -> ServingFleet:
    """A fleet with a configuration ``tpN`` for each size that creates engines from the PodTemplate ``engine``."""
    plain: Object = {
        "nodes": {"selector": {}},
        "configurations": [configuration(f"tp{size}", size) for size in sizes or (1, 2, 4)],
        "engine": {"templateRef": {"kind": "PodTemplate", "name": "engine"}, "version": "0.32.0"},
    }
    return fleet(**(plain | spec))


def pod_template(args: Sequence[str] = ("--model=m",), image: str = "vllm/vllm-openai:v0.32.0", **spec: Any) -> Object:
    """The PodTemplate ``engine``."""
    container = {"name": "vllm", "image": image, "args": list(args)}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "engine", "namespace": "default"},
        "template": {"metadata": {"labels": {"app": "engine"}}, "spec": {"containers": [container], **spec}},
    }


def rollout_plan(
    groups: Groups,
    *,
    classes: Mapping[str, Sequence[str]] | None = None,
    flags: Mapping[str, Mapping[str, str]] | None = None,
    deployments: Mapping[str, str] | None = None,
    stages: int = 1,
    placed: bool = True,
) -> RoutingPlan:
    """A plan of fleet ``demo``: groups as given, and every class routed to all their configurations unless said."""
    names = sorted(groups)
    routed = classes if classes is not None else {"chat": names}
    spec = RoutingPlanSpec.model_validate(
        {
            "fleetName": "demo",
            "inputsDigest": "0" * 64,
            "method": "Certified",
            "groups": [
                _group(name, groups[name], (flags or {}).get(name, {}), (deployments or {}).get(name), stages, placed)
                for name in names
            ],
            "classes": [_class(name, on) for name, on in sorted(routed.items())],
        }
    )
    return RoutingPlan(metadata=ObjectMeta(name=plan_name(spec)), spec=spec)


def in_force(plan: RoutingPlan) -> RoutingPlan:
    """The plan with the condition that says it is in force."""
    applied = {
        "type": "Applied", "status": "True", "reason": "AsPlanned", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return RoutingPlan.model_validate(plan.to_wire() | {"status": {"conditions": [applied]}})


def snapshot_of(
    made: ServingFleet,
    cluster: ClusterView,
    *,
    now: float = 1_000.0,
    plans: Sequence[RoutingPlan] = (),
    classes: Sequence[RequestClass] | None = None,
    measured: Measured | None = None,
) -> Snapshot:
    """A Snapshot of these objects."""
    known = (request_class("chat"),) if classes is None else tuple(classes)
    return Snapshot(now, made, "1", known, tuple(plans), cluster, measured or Measured())


def _group(
    name: str, where: Sequence[str | Sequence[str]], flags: Mapping[str, str], deployment: str | None, stages: int,
    placed: bool,
) -> Object:  # fmt: skip
    gpus = int(name.removeprefix("tp").split("-")[0])
    placements = [{"stages": [node] * stages if isinstance(node, str) else list(node)} for node in where]
    group: Object = {
        "configuration": name,
        "replicas": len(where),
        "engineFlags": [{"name": flag, "value": value} for flag, value in sorted(flags.items())],
        "kvCapacityTokens": TOKENS_PER_GPU * gpus,
        "budgetTokens": TOKENS_PER_GPU * gpus,
        "maxSequences": 16,
    }
    if placed and deployment is None:
        group["placements"] = placements
    return group | ({"deployment": deployment} if deployment else {})


def _class(name: str, on: Sequence[str]) -> Object:
    shares = [1000 // len(on)] * len(on)
    shares[0] += 1000 - sum(shares)
    routes = [
        {"configuration": k, "shareMilli": share, "reservationTokens": 160} for k, share in zip(on, shares, strict=True)
    ]
    return {
        "name": name, "reservationTokens": 160, "fractileMilli": 900, "routes": routes, "admitMilli": 1000,
        "maxPromptTokens": 100, "maxOutputTokens": 100,
    }  # fmt: skip
