"""The chart with a real helm on a real API server: installed, upgraded over live objects, removed, installed again."""

import shutil
from pathlib import Path

import pytest
import yaml

from e2e.harness.cluster import Cluster
from e2e.install import installation
from e2e.install.installation import FLEETS
from e2e.install.release import Release
from e2e.install.rendering import CHART, NAMESPACE, Object

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("own_control_plane")]

HERE = f"--namespace={FLEETS}"
USERS_KINDS = "servingfleets,requestclasses,routingplans,deployments,pods"


def chart_of_before(directory: Path) -> Path:
    """The chart as a version before this one: its pods are of another image, and it had no network policies."""
    before = directory / "kvplan"
    shutil.copytree(CHART, before)
    description = yaml.safe_load((before / "Chart.yaml").read_text())
    (before / "Chart.yaml").write_text(yaml.safe_dump({**description, "version": "0.0.9", "appVersion": "0.0.9"}))
    (before / "templates" / "operator" / "network-policy.yaml").unlink()
    return before


@pytest.fixture(scope="module")
def release(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The chart before, installed in a restricted namespace, CRDs included, and a fleet whose plan is in force."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    Release(cluster, chart_of_before(tmp_path_factory.mktemp("before"))).upgrade()
    installation.apply_sample(cluster)
    installation.accept(cluster, installation.candidate(cluster))
    return Release(cluster)


def uids(cluster: Cluster) -> set[str]:
    """Everything of the fleet that is there, by identity."""
    return {item["metadata"]["uid"] for item in cluster.kubectl.get(USERS_KINDS, HERE)["items"]}


def templates(cluster: Cluster) -> dict[str, Object]:
    """What each engine Deployment makes pods from."""
    return {item["metadata"]["name"]: item["spec"] for item in cluster.kubectl.get("deployments", HERE)["items"]}


def operators(cluster: Cluster) -> set[str]:
    """The operator's pods that are not going away, by identity."""
    pods = cluster.kubectl.get("pods", f"--namespace={NAMESPACE}")["items"]
    return {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


@pytest.mark.parametrize("settings", [{}, {"log_level": "DEBUG"}], ids=["another version", "other settings"])
def test_an_upgrade_restarts_the_operator_and_nothing_of_the_fleet(release: Release, settings: Object) -> None:
    cluster = release.cluster
    fleet, engines, before = uids(cluster), templates(cluster), operators(cluster)
    release.upgrade(operator={"settings": settings})
    assert operators(cluster).isdisjoint(before)
    cluster.kubectl("get", "networkpolicy/kvplan-operator", f"--namespace={NAMESPACE}")
    installation.wait_for_reason(cluster, "AsPlanned")
    assert uids(cluster) == fleet
    assert templates(cluster) == engines


def test_the_hash_secret_is_made_once_and_outlives_upgrades_and_the_release(release: Release) -> None:
    cluster = release.cluster
    # A router whose pods nobody has room for: the objects are what this is about.
    router = {"fleet": installation.FLEET, "namespace": FLEETS, "replicas": 1}
    nowhere = {"nodeSelector": {"bed.kvplan.dev/node": "none"}}
    release.upgrade(routers=[router], router=nowhere, wait=False)
    first = cluster.kubectl.get("secret", "kvplan-hash-secret", HERE)["data"]
    release.upgrade(routers=[router], router={**nowhere, "drainSeconds": 60}, wait=False)
    assert cluster.kubectl.get("secret", "kvplan-hash-secret", HERE)["data"] == first
    release.upgrade()
    assert cluster.kubectl.get("secret", "kvplan-hash-secret", HERE)["data"] == first


def test_after_removal_the_fleet_serves_on_and_a_new_installation_finds_it_as_it_was(release: Release) -> None:
    cluster = release.cluster
    fleet, engines = uids(cluster), templates(cluster)
    release.uninstall()
    assert uids(cluster) == fleet
    release.upgrade()
    installation.wait_for_reason(cluster, "AsPlanned")
    assert uids(cluster) == fleet
    assert templates(cluster) == engines
