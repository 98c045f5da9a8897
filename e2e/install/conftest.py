"""Fixtures of the installation's tests: a cluster whose one node runs pods for real, as people's clusters do."""

from collections.abc import Iterator

import pytest

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.simulated_nodes import SimulatedNode
from e2e.install.installation import FLEETS


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with one process node of eight GPUs and the namespace of the fleets; no CRDs."""
    with Cluster() as bed:
        process_nodes.start(bed, ProcessNode(SimulatedNode("worker-1"), back_off_scale=0.02))
        bed.kubectl("create", "namespace", FLEETS)
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()
