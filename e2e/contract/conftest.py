"""Fixtures of the contract suite; its tests are coroutines, each run to its end on a loop of its own."""

import asyncio
import hashlib
from collections.abc import Iterator

import pytest

from e2e.contract.client import Client
from e2e.coroutines import loop, pytest_pyfunc_call
from e2e.harness.cluster import Cluster

__all__ = ["client", "loop", "name", "place", "pytest_pyfunc_call"]


@pytest.fixture
def client(cluster: Cluster, loop: asyncio.Runner) -> Iterator[Client]:
    """The administrator's client."""
    connected = loop.run(Client.connect(cluster.kubeconfig))
    yield connected
    loop.run(connected.close())


@pytest.fixture(scope="session")
def place(cluster: Cluster) -> Iterator[str]:
    """A namespace for all tests, which name their objects after themselves; it goes at the end."""
    name = "kvplan-contract"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of the test's own for its objects, short enough for a fleet."""
    words = request.node.originalname.removeprefix("test_").replace("_", "-")
    return f"{words[:24]}-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:6]}"
