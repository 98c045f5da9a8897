"""LeaderWorkerSets for groups that span nodes: a pod per node, started as one engine (06-vllm §6).

Inputs: an engine's pod template and the node of each pod of a group. Output: the object's spec without replicas. The
pods find each other through the variables that the controller sets; only the leader listens and has probes. Pure.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from kvplan_operator.model.pods import Object, part, parts

LEADER_FLAGS = (
    "--distributed-executor-backend=mp",
    "--nnodes=$(LWS_GROUP_SIZE)",
    "--node-rank=$(LWS_WORKER_INDEX)",
    "--master-addr=$(LWS_LEADER_ADDRESS)",
)
WORKER_FLAGS = (*LEADER_FLAGS, "--headless")
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def worker_set_spec(template: Object, container: str, nodes: tuple[str, ...]) -> dict[str, Any]:
    """The spec: the leader on the first node, workers on the others.

    A worker may run on any of the workers' nodes, as they share a template; with two nodes that is the node planned.
    """
    leader, worker = copy.deepcopy(dict(template)), copy.deepcopy(dict(template))
    _pin(leader, nodes[:1])
    _pin(worker, dict.fromkeys(nodes[1:]))
    _start_as(leader, container, LEADER_FLAGS)
    _start_as(worker, container, WORKER_FLAGS, without=_PROBES)
    group = {
        "size": len(nodes),
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": leader,
        "workerTemplate": worker,
    }
    rolling = {"maxSurge": 0, "maxUnavailable": 1}
    return {
        "startupPolicy": "LeaderCreated",
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "leaderWorkerTemplate": group,
    }


def _pin(template: Mapping[str, Any], nodes: Iterable[str]) -> None:
    required = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"] = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes
    ]


def _start_as(template: Object, container: str, flags: tuple[str, ...], without: tuple[str, ...] = ()) -> None:
    host = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    for engine in parts(part(template, "spec"), "containers"):
        if engine.get("name") == container and isinstance(engine, dict):
            engine["args"] = [*engine.get("args", ()), *flags]
            engine["env"] = [*(entry for entry in engine.get("env", ()) if entry.get("name") != host["name"]), host]
            for probe in without:
                engine.pop(probe, None)
