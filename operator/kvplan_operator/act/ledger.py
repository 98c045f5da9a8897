"""The GPU ledger: what every node can give, what pods hold there, and what was promised to pods not yet bound.

Inputs: Nodes, Pods, promises. Outputs: free GPUs by node. A pod counts from binding until it is terminal, Terminating
included, whoever owns it; a created set's group that has no bound pod yet counts where it will run. The invariant that
steps keep: Σ ≤ allocatable on every node after every event. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvplan_operator.act.engine_sets import Footprint
from kvplan_operator.model.pods import Object, is_terminal, name_of, node_of, part, requested_gpus, whole_gpus


@dataclass(frozen=True)
class Ledger:
    """GPUs by node.

    Attributes:
        allocatable: what the node offers.
        held: requests of bound pods that are not terminal.
        promised: of groups that were asked for and have no bound pod yet.
    """

    allocatable: Mapping[str, int]
    held: Mapping[str, int]
    promised: Mapping[str, int]

    def free(self, node: str) -> int:
        """GPUs that nobody holds or was promised; a node that does not exist has none."""
        taken = self.held.get(node, 0) + self.promised.get(node, 0)
        return self.allocatable.get(node, 0) - taken

    def missing(self, wanted: Footprint) -> dict[str, int]:
        """GPUs that would have to be freed by node before a group fits; empty if it fits."""
        short = {node: gpus - self.free(node) for node, gpus in wanted.items()}
        return {node: gpus for node, gpus in short.items() if gpus > 0}

    def overdrawn(self) -> tuple[str, ...]:
        """Nodes whose pods hold more than there is."""
        return tuple(sorted(node for node, gpus in self.held.items() if gpus > self.allocatable.get(node, 0)))


def ledger(
    nodes: Iterable[Object], pods: Iterable[Object], resource: str, promised: Iterable[Footprint] = ()
) -> Ledger:
    """The ledger of a cluster.

    Args:
        nodes: every Node.
        pods: every Pod, of all namespaces.
        resource: name under which nodes offer GPUs.
        promised: footprints of groups without bound pods.

    Raises:
        InvalidInput: a quantity that is no whole number.
    """
    held: Counter[str] = Counter()
    for pod in pods:
        if node_of(pod) and not is_terminal(pod):
            held[node_of(pod)] += requested_gpus(pod, resource)
    to_come: Counter[str] = Counter()
    for wanted in promised:
        to_come.update(wanted)
    return Ledger({name_of(node): _offered(node, resource) for node in nodes}, held, to_come)


def _offered(node: Object, resource: str) -> int:
    value = part(part(node, "status"), "allocatable").get(resource, 0)
    return whole_gpus(f"Node {name_of(node)}", f"status.allocatable[{resource}]", value)
