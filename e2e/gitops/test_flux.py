"""What the other tests take for granted: Flux applies, changes, reverts and prunes as a repository says."""

from typing import Any

import pytest

from e2e.gitops.flux import Flux
from e2e.gitops.repository import Repository
from e2e.harness.cluster import Cluster
from e2e.harness.paths import REPOSITORY

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]


def settings(colour: str) -> dict[str, Any]:
    """A ConfigMap, as the repository has it."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": colour}}


def test_what_is_pushed_is_applied_changed_reverted_and_pruned(
    cluster: Cluster, flux: Flux, namespace: str, repository: Repository
) -> None:
    def colour() -> str:
        return str(cluster.kubectl.get("configmap", "settings", f"--namespace={namespace}")["data"]["colour"])

    repository.write("settings.yaml", settings("red"))
    repository.push("Red")
    sync = flux.follow(repository, namespace)
    sync.wait_ready()
    assert colour() == "red"

    repository.write("settings.yaml", settings("blue"))
    repository.push("Blue")
    sync.now()
    assert colour() == "blue"

    repository.revert()
    sync.now()
    assert colour() == "red"

    cluster.kubectl(
        "patch", "configmap", "settings", f"--namespace={namespace}", "--patch", '{"data": {"colour": "x"}}'
    )
    sync.now()
    assert colour() == "red"

    repository.remove("settings.yaml")
    repository.write("other.yaml", settings("green") | {"metadata": {"name": "other"}})
    repository.push("Another")
    sync.now()
    assert sync.inventory() == {"other"}
    names = cluster.kubectl("get", "configmaps", f"--namespace={namespace}", "--output=name").split()
    assert "configmap/settings" not in names
    sync.delete()


def test_the_example_for_flux_is_what_its_api_takes(cluster: Cluster, flux: Flux) -> None:
    example = REPOSITORY / "manifests" / "gitops" / "flux.yaml"
    taken = cluster.kubectl("create", "--dry-run=server", "--validate=strict", "--output=name", f"--filename={example}")
    assert taken.split() == [
        "gitrepository.source.toolkit.fluxcd.io/serving",
        "kustomization.kustomize.toolkit.fluxcd.io/kvplan",
        "kustomization.kustomize.toolkit.fluxcd.io/serving",
    ]
