"""The CRDs on a real API server: installed by a plain apply, explained, and enforced."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.errors import KubectlFailed
from e2e.harness.paths import CRDS, SAMPLES

pytestmark = pytest.mark.e2e

KINDS = {"requestclasses": "RequestClass", "routingplans": "RoutingPlan", "servingfleets": "ServingFleet"}
MANIFESTS = sorted(SAMPLES.rglob("*.yaml"))


@pytest.mark.smoke
def test_the_api_server_serves_the_three_kinds_with_their_short_names(cluster: Cluster) -> None:
    listed = cluster.kubectl("api-resources", "--api-group=kvplan.dev", "--no-headers", "--categories=kvplan")
    rows = [line.split() for line in listed.splitlines()]
    assert {row[0]: row[-1] for row in rows} == KINDS
    assert {row[0]: row[1] for row in rows} == {
        "requestclasses": "rclass",
        "routingplans": "rplan",
        "servingfleets": "fleet",
    }


@pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_applying_the_crds_again_changes_nothing(cluster: Cluster, options: tuple[str, ...]) -> None:
    cluster.kubectl("apply", *options, "-f", str(CRDS))
    before = [crd["metadata"]["resourceVersion"] for crd in cluster.kubectl.get("-f", str(CRDS))["items"]]
    cluster.kubectl("apply", *options, "-f", str(CRDS))
    assert [crd["metadata"]["resourceVersion"] for crd in cluster.kubectl.get("-f", str(CRDS))["items"]] == before


def descriptions(schema: dict[str, Any], path: str) -> list[str]:
    """Return the paths of all fields that lack a description."""
    missing = []
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        if not field.get("description"):
            missing.append(here)
        missing += descriptions(field.get("items", field), here)
    return missing


@pytest.mark.parametrize("resource", sorted(KINDS))
def test_explain_describes_every_field_of_the_spec(cluster: Cluster, resource: str) -> None:
    text = cluster.kubectl("explain", f"{resource}.spec", "--recursive")
    (version,) = yaml.safe_load((CRDS / f"kvplan.dev_{resource}.yaml").read_text())["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for field in spec["properties"]:
        assert f"  {field}\t" in text
    assert descriptions(spec, f"{resource}.spec") == []


@pytest.mark.smoke
@pytest.mark.parametrize("manifest", MANIFESTS, ids=[str(path.relative_to(SAMPLES)) for path in MANIFESTS])
def test_the_samples_are_accepted(cluster: Cluster, namespace: str, manifest: Path) -> None:
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", f"--namespace={namespace}", "-f", str(manifest))


def test_a_misspelt_field_is_refused_by_name(cluster: Cluster, namespace: str) -> None:
    fleet = yaml.safe_load((SAMPLES / "minimal" / "fleet.yaml").read_text())
    fleet["spec"]["suspended"] = True
    with pytest.raises(KubectlFailed, match=r'unknown field "spec\.suspended"'):
        cluster.kubectl.apply(fleet, options=["--dry-run=server", f"--namespace={namespace}"])
