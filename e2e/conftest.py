"""Fixtures of the tests on a real control plane."""

import os
import uuid
from collections.abc import Iterator

import pytest

from e2e.harness.cluster import KUBECONFIG_VARIABLE, Cluster
from e2e.harness.simulated_nodes import sample_nodes


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers here: only this folder's tests carry them."""
    config.addinivalue_line("markers", "e2e: needs a real control plane (`make e2e`)")
    config.addinivalue_line("markers", "smoke: one of the few that stand for the others on every change")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with the sample's nodes and the CRDs, shared by the tests of this process; logs stay when one fails."""
    with Cluster(sample_nodes()) as bed:
        bed.install_crds()
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; the GPUs that its workloads held are free when the next test starts."""
    name = f"{request.node.originalname.replace('_', '-')[:50].strip('-')}-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "serviceaccount/default", f"--namespace={name}", "--for=create", "--timeout=30s")
    yield name
    cluster.kubectl("delete", "deployments,jobs", "--all", f"--namespace={name}", "--cascade=foreground")
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def own_control_plane() -> None:
    """Skip a test that stops or inspects the control plane when the caller brought a cluster."""
    if os.environ.get(KUBECONFIG_VARIABLE):
        pytest.skip(f"{KUBECONFIG_VARIABLE} is set: its control plane is not ours to touch")
