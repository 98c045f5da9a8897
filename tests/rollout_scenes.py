"""Two scenes of rollouts: created groups on full nodes, and an adopted Deployment that the plan wants otherwise."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.snapshot import Snapshot
from tests.planning import configuration, pod
from tests.rollouts import RULES, rollout_fleet, rollout_plan
from tests.simulated_cluster import SimulatedCluster

SPLIT = rollout_plan({"tp2": ["n0", "n0", "n1", "n1"]})
JOINED = rollout_plan({"tp2": ["n0", "n0"], "tp4": ["n1"]})


def started(plan: RoutingPlan = SPLIT, gpus: tuple[int, ...] = (4, 4), **changes: Any) -> SimulatedCluster:
    """A cluster with a plan in force and its table read."""
    cluster = SimulatedCluster(rollout_fleet(1, 2, 4), gpus, random.Random(1), **changes)
    for _ in range(3):
        cluster.execute(cluster.look(plan, RULES).commands)
        cluster.settle()
    cluster.before = plan
    cluster.in_flight = {name: type(counts)() for name, counts in cluster.in_flight.items()}
    return cluster


def adopting(
    replicas: int, updated: int, annotations: Mapping[str, str] | None = None, **changes: Any
) -> tuple[Snapshot, RoutingPlan]:
    """A Deployment of three pods that the plan wants with other flags."""
    k = configuration("tp2", 2, deployment="chat")
    cluster = SimulatedCluster(rollout_fleet(configurations=[k], engine={"version": "0.32.0"}), (8,), random.Random(1))
    container = {"name": "vllm", "args": ["--model=m"], "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    cluster.sets["chat"] = {
        "metadata": {
            "name": "chat",
            "namespace": "default",
            "uid": "d",
            "resourceVersion": "1",
            "generation": 2,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "replicas": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"spec": {"containers": [container]}},
        },
        "status": {"observedGeneration": 2, "updatedReplicas": updated},
    }
    owner = [{"kind": "ReplicaSet", "name": "chat-abc"}]
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for number in range(3):
        labels = {"pod-template-hash": "abc"}
        metadata = {"uid": f"u{number}", "ownerReferences": owner}
        cluster.pods[f"chat-{number}"] = pod(f"chat-{number}", "n0", 2, labels=labels, metadata=metadata) | {
            "status": ready
        }
    plan = rollout_plan({"tp2": ["?"] * replicas}, deployments={"tp2": "chat"}, flags={"tp2": {"max-num-seqs": "8"}})
    snapshot = cluster.snapshot()
    return replace(snapshot, cluster=replace(snapshot.cluster, **changes)), plan
