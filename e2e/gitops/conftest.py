"""Fixtures of the walk with Flux: its controllers on the shared cluster, an operator, a repository."""

from collections.abc import Iterator

import pytest

from e2e.gitops.flux import Flux
from e2e.gitops.repository import Repository
from e2e.harness.cluster import Cluster
from e2e.operator.operator_process import Operator


@pytest.fixture(scope="session")
def flux(cluster: Cluster) -> Flux:
    """Flux's controllers; they end with the cluster."""
    return Flux(cluster)


@pytest.fixture
def repository(flux: Flux, namespace: str) -> Repository:
    """An empty repository of the test's own."""
    return flux.repository(namespace)


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator for the test's namespace."""
    started = Operator(cluster, namespace)
    yield started
    started.process.stop()
