"""Fixtures of the contract suite; its tests are coroutines, each run to its end on a loop of its own."""

import asyncio
import hashlib
import inspect
from collections.abc import Iterator
from typing import cast

import pytest

from e2e.contract.client import Client
from e2e.harness.cluster import Cluster

_DEADLINE_SECONDS = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test; others are pytest's own business."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    scenario = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    loop = cast(asyncio.Runner, pyfuncitem.funcargs["loop"])
    loop.run(asyncio.wait_for(scenario, _DEADLINE_SECONDS))
    return True


@pytest.fixture(autouse=True)
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of one test."""
    with asyncio.Runner() as runner:
        yield runner


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
