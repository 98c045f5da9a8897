"""What every fleet's look needs, made once: clients, caches, processes, metrics, the clock. Pure data."""

from collections.abc import Callable
from dataclasses import dataclass

from kvplan_operator.kube.client import Client
from kvplan_operator.metrics import Metrics
from kvplan_operator.observe.measure import Sources
from kvplan_operator.reconcile.solver_child import Solvers
from kvplan_operator.reconcile.world import World
from kvplan_operator.reconcile.writing import Writer


@dataclass(frozen=True)
class Services:
    """Shared by all fleets.

    Attributes:
        client: fenced: a process that lost its Lease writes nothing.
        world: the cluster as the watches have it.
        sources: of measurements.
        solvers: solver processes.
        writer: of statuses.
        metrics: of the operator.
        clock: seconds since the epoch.
    """

    client: Client
    world: World
    sources: Sources
    solvers: Solvers
    writer: Writer
    metrics: Metrics
    clock: Callable[[], float]
