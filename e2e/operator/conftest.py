"""Fixtures of the operator's tests on a real control plane; coroutine tests run on a loop of their own."""

import asyncio
from collections.abc import Iterator

import pytest

from e2e.coroutines import loop, pytest_pyfunc_call
from e2e.harness.cluster import Cluster
from kvplan_operator.kube.client import Client

__all__ = ["client", "loop", "pytest_pyfunc_call"]


@pytest.fixture
def client(cluster: Cluster, loop: asyncio.Runner) -> Iterator[Client]:
    """The administrator's client."""
    connected = loop.run(Client.connect(cluster.kubeconfig))
    yield connected
    loop.run(connected.close())
