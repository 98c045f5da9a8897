"""Fixtures of the tests of the CRDs: a connection, and one namespace for all objects that are really made."""

from collections.abc import Iterator

import pytest

from e2e.crds.api import Api
from e2e.harness.cluster import Cluster


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Iterator[Api]:
    """The administrator's connection to the API server, on which our kinds are served."""
    with Api(cluster.kubeconfig) as connection:
        yield connection


@pytest.fixture(scope="session")
def shelf(cluster: Cluster) -> Iterator[str]:
    """A namespace whose objects each test names after itself; it goes with all of them at the end."""
    name = "kvplan-crds"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
