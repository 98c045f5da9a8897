"""The kustomize installation on a real API server: restricted pods, just enough rights, and what removing it leaves."""

import subprocess
import sys
from pathlib import Path

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.errors import KubectlFailed
from e2e.install import installation
from e2e.install.access import Grant, granted, refused, used
from e2e.install.installation import FLEETS, OPERATOR, ROUTER
from e2e.install.rendering import NAMESPACE, Object, kustomize, manifests

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

SPANNING = "needs the CRD of LeaderWorkerSet and a group that spans nodes"
WORKER_SETS = ("leaderworkerset.x-k8s.io", "leaderworkersets")
NOT_USED_HERE = {
    Grant("kvplan.dev", "routingplans", "delete"): "no plan is deleted before it is a day old",
    **{Grant(*WORKER_SETS, verb): SPANNING for verb in ("list", "watch", "create", "patch", "delete")},
}
"""Grants that the story below cannot need, each with the reason."""


SHARDS = Grant("", "configmaps", "get")
"""Of a router: nothing is read when all keys fit into the index."""


@pytest.fixture(scope="module")
def objects(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """What is installed; the operator is ready."""
    cluster.install_crds()
    rendered = installation.operator_by_kustomize(tmp_path_factory.mktemp("operator"))
    installation.apply(cluster, rendered)
    installation.wait_for_rollout(cluster, OPERATOR, NAMESPACE)
    return rendered


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """The fleet's request path."""
    return installation.router_by_kustomize(tmp_path_factory.mktemp("router"))


@pytest.fixture(scope="module")
def story(cluster: Cluster, objects: list[Object], routers: list[Object]) -> list[Object]:
    """From an applied fleet to a plan in force and on to another one, which drains, shrinks and deletes.

    A live router has each table before a step goes on.
    """
    installation.apply_sample(cluster)
    installation.apply(cluster, routers)
    installation.wait_for_rollout(cluster, ROUTER, FLEETS)
    first = installation.candidate(cluster)
    installation.accept(cluster, first)
    installation.edit(cluster, configurations=[{"name": "tp2", "tensorParallel": 2}])
    installation.accept(cluster, installation.candidate(cluster, other_than=first))
    for deployment, place in ((OPERATOR, NAMESPACE), (ROUTER, FLEETS)):
        installation.stop(cluster, deployment, place)
    return objects


def as_pod(deployment: Object) -> Object:
    """The pod that a Deployment would make."""
    template = deployment["spec"]["template"]
    metadata = {"name": "as-a-pod", "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def admitted(cluster: Cluster, pod: Object) -> None:
    """Ask the API server whether it takes a pod in the installation's namespace, without making it."""
    pod["spec"].pop("serviceAccountName", None)
    cluster.kubectl.apply(pod, options=["--dry-run=server", f"--namespace={NAMESPACE}"])


@pytest.mark.usefixtures("objects")
def test_a_pod_that_is_not_restricted_is_refused(cluster: Cluster) -> None:
    container = {"name": "c", "image": "registry.example/c:1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "as-root"}, "spec": {"containers": [container]}}
    with pytest.raises(KubectlFailed, match=r'violates PodSecurity "restricted'):
        admitted(cluster, pod)


@pytest.mark.usefixtures("objects")
def test_every_pod_of_the_manifests_is_restricted(cluster: Cluster, tmp_path: Path) -> None:
    folder = manifests(tmp_path)
    rendered = kustomize(folder / "overlays" / "cluster-wide") + kustomize(folder / "router")
    deployments = [item for item in rendered if item["kind"] == "Deployment"]
    assert {item["metadata"]["name"] for item in deployments} == {"kvplan-operator", "kvplan-router"}
    for deployment in deployments:
        admitted(cluster, as_pod(deployment))


def test_the_operators_rights_are_those_it_needs(cluster: Cluster, story: list[Object]) -> None:
    log, account, rights = cluster.plane.audit_log, f"{NAMESPACE}:{OPERATOR}", granted(story)
    assert refused(log, account) == set()
    assert used(log, account) - rights == set()
    assert rights - used(log, account) == set(NOT_USED_HERE)


@pytest.mark.usefixtures("story")
def test_the_routers_rights_are_those_it_needs(cluster: Cluster, routers: list[Object]) -> None:
    log, account, rights = cluster.plane.audit_log, f"{FLEETS}:{ROUTER}", granted(routers)
    assert refused(log, account) == set()
    assert used(log, account) - rights == set()
    assert rights - used(log, account) == {SHARDS}


def test_without_the_operator_fleets_plans_and_engines_stay(cluster: Cluster, story: list[Object]) -> None:
    here = f"--namespace={FLEETS}"
    kinds = "servingfleets,requestclasses,routingplans,deployments,pods,configmaps"
    before = {item["metadata"]["uid"] for item in cluster.kubectl.get(kinds, here)["items"]}
    installation.delete(cluster, story)
    after = cluster.kubectl.get(kinds, here)["items"]
    assert {item["metadata"]["uid"] for item in after} == before
    engines = [item for item in after if item["kind"] == "Deployment" and item["metadata"]["name"] != ROUTER]
    assert engines
    assert all(item["status"].get("readyReplicas") == item["spec"]["replicas"] for item in engines)
    assert not any("ownerReferences" in item["metadata"] for item in engines)


def test_engines_outlive_their_fleet_until_they_are_cleaned_up(cluster: Cluster, story: list[Object]) -> None:
    here = f"--namespace={FLEETS}"
    installation.delete(cluster, story)
    cluster.kubectl("delete", "fleet", "--all", here, "--timeout=60s")
    left = "--selector=kvplan.dev/set"
    assert cluster.kubectl.get("deployments", here, left)["items"]
    command = [sys.executable, "-m", "kvplan_cli", "cleanup", "--engines", "--yes", here]
    subprocess.run([*command, f"--kubeconfig={cluster.kubeconfig}"], check=True, capture_output=True, text=True)
    assert cluster.kubectl.get("deployments", here, left)["items"] == []
