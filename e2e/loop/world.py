"""Everything at once: a control plane, nodes that run pods, Prometheus, the operator, routers with their Envoys.

Inputs: nodes, how many routers. Outputs: an empty namespace `serving` in which a fleet can be applied, and a grip
on every part. Routers, Envoys and engines are pods; the operator is a process of its own with the shipped rights and
nothing more, so that a test can kill it between any two steps. Everything ends with the world.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType, TracebackType
from typing import Any, Self

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.commands import HOST
from e2e.harness.process import Command
from e2e.harness.readiness import answers
from e2e.harness.simulated_nodes import sample_nodes
from e2e.loop import manifests

NAMESPACE = "serving"
PLACE = f"--namespace={NAMESPACE}"
NODES = tuple(ProcessNode(node, back_off_scale=0.02) for node in sample_nodes())
Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Tell nobody."""


class World:
    """The running parts.

    Attributes:
        cluster: control plane and processes.
        prometheus: URL of its API.
        operator: its process.
    """

    def __init__(
        self,
        nodes: Sequence[ProcessNode] = NODES,
        routers: int = 2,
        tell: Progress = silent,
        settings: Mapping[str, str] = MappingProxyType({}),
        router_settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare; everything starts with the block.

        Args:
            nodes: that run pods.
            routers: replicas.
            tell: of the progress.
            settings: of the operator, as its variables name them without `KVPLAN_`.
            router_settings: of the routers, as their variables name them without `KVPLAN_ROUTER_`.
        """
        self._nodes, self._routers, self._tell, self._settings = nodes, routers, tell, settings
        self._router_settings = router_settings
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything."""
        self._tell("control plane: etcd, API server, controllers, scheduler")
        self.cluster = self._stack.enter_context(Cluster())
        try:
            self._start()
        except BaseException:
            self.cluster.keep_logs()
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything; logs stay when the block failed."""
        self._stack.__exit__(kind, error, trace)

    def apply(self, *documents: Any) -> None:
        """Apply objects to the fleet's namespace, as a person would."""
        self.cluster.kubectl.apply(*documents, options=[PLACE])

    def get(self, *what: str) -> Any:
        """An object of the namespace, or a list with `items`."""
        return self.cluster.kubectl.get(*what, PLACE)

    def wait_for(self, what: str, condition: str, seconds: int = 60, *more: str) -> None:
        """Return when `kubectl wait` does."""
        self.cluster.kubectl("wait", what, condition, PLACE, f"--timeout={seconds}s", *more, seconds=seconds + 10.0)

    def restart_operator(self) -> None:
        """Kill the operator as a crash would, and start another; it leads once the Lease of the first has run out."""
        self.operator.kill()
        self.operator.start()

    def _start(self) -> None:
        cluster = self.cluster
        cluster.install_crds()
        cluster.kubectl.apply(manifests.namespace(NAMESPACE), *manifests.operator_rights(cluster.kubectl))
        self._tell(f"{sum(each.node.gpus for each in self._nodes)} GPUs on {len(self._nodes)} nodes")
        for node in self._nodes:
            process_nodes.start(cluster, node)
        self._tell("Prometheus")
        self.prometheus = cluster.start_prometheus()
        self._tell("operator")
        port = cluster.ports.take()
        self.operator_url = f"http://{HOST}:{port}"
        self.operator = cluster.run(self._operator(port), lambda: answers(f"{self.operator_url}/readyz"))
        self._tell("routers, each with an Envoy")
        cluster.kubectl("wait", "serviceaccount/default", PLACE, "--for=create", "--timeout=30s")
        self.apply(*manifests.router(self._routers, self._router_settings))

    def _operator(self, port: int) -> Command:
        identity = self.cluster.plane.identity(manifests.OPERATOR, "system:serviceaccounts", "system:authenticated")
        environment = {
            "KVPLAN_KUBECONFIG": str(identity),
            "KVPLAN_LISTEN": f"{HOST}:{port}",
            "KVPLAN_NAMESPACES": NAMESPACE,
            "KVPLAN_LEASE_NAMESPACE": manifests.OPERATOR_NAMESPACE,
            "KVPLAN_PROMETHEUS_URL": self.prometheus,
            "KVPLAN_TICKS_STALENESS_SECONDS": "5",  # a demonstration has minutes, not hours
            **{f"KVPLAN_{name}": value for name, value in self._settings.items()},
        }
        return Command("operator", [sys.executable, "-m", "kvplan_operator.main"], environment)
