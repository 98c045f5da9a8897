"""Every state that the pods of a cluster went through, as the API server's watch tells, one after another.

Inputs: a cluster. Output: for each event of the one pod watch, the GPUs that pods hold on each node and the GPUs of
Ready engines. kubectl does the watching; what it printed is read afterwards, so that no event is missed.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from e2e.harness.assets import binary
from e2e.harness.cluster import Cluster
from e2e.harness.process import Command, Process
from kvplan_operator.model.pods import is_ready, is_terminal, is_terminating, node_of, requested_gpus

GPU = "nvidia.com/gpu"
Pod = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """The pods after one event.

    Attributes:
        held: GPUs that bound pods hold by node, those of Terminating ones too.
        serving: GPUs of Ready pods of the namespace that are not Terminating.
    """

    held: Mapping[str, int]
    serving: int


class PodHistory:
    """A watch of all pods, from now on."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        """Start it; it ends with the cluster."""
        self._namespace = namespace
        watch = ("get", "pods", "--all-namespaces", "--watch", "--output-watch-events", "--output=json")
        argv = [str(binary("kubectl")), f"--kubeconfig={cluster.kubeconfig}", *watch]
        self._watch: Process = cluster.run(Command(f"pods-{namespace}", argv))

    def moments(self) -> Iterator[Moment]:
        """End the watch and give back what happened."""
        self._watch.stop()
        pods: dict[str, Pod] = {}
        for event in _documents(self._watch.log.read_text()):
            pod = event["object"]
            if event["type"] == "DELETED":
                pods.pop(pod["metadata"]["uid"], None)
            else:
                pods[pod["metadata"]["uid"]] = pod
            yield self._moment(pods)

    def _moment(self, pods: Mapping[str, Pod]) -> Moment:
        held: Counter[str] = Counter()
        serving = 0
        for pod in pods.values():
            gpus, node = requested_gpus(pod, GPU), node_of(pod)
            if node and not is_terminal(pod):
                held[node] += gpus
            own = pod["metadata"]["namespace"] == self._namespace
            serving += gpus if own and is_ready(pod) and not is_terminating(pod) else 0
        return Moment(held, serving)


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """JSON values that follow one another; the last may be cut off."""
    decoder, at = json.JSONDecoder(), 0
    while (at := _next(text, at)) < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        yield document


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
