"""The router for a gateway of one's own: no Envoy of ours is left, and the gateway's Service finds the pods."""

import pytest
import yaml

from e2e.install.rendering import Object, by_name, kustomize, manifests
from kvplan_router.envoy.gateways import GRPC_PORT, HEALTH_PORT, GatewayOptions, router_service
from kvplan_router.settings import read_settings
from kvplan_router.transport.messages import InFlightMode

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Object:
    """The router's Deployment with the component."""
    directory = tmp_path_factory.mktemp("gateway")
    manifests(directory)
    (directory / "own").mkdir()
    asked = {
        "namespace": "default",
        "resources": ["../manifests/router"],
        "components": ["../manifests/components/gateway"],
    }
    (directory / "own" / "kustomization.yaml").write_text(yaml.safe_dump(asked))
    objects = by_name(kustomize(directory / "own"))
    assert ("Service", "default", "kvplan-router") not in objects
    return objects["Deployment", "default", "kvplan-router"]


def test_the_router_is_alone_in_its_pod_and_waits_for_no_envoy(deployment: Object) -> None:
    pod = deployment["spec"]["template"]["spec"]
    assert [container["name"] for container in pod["containers"]] == ["router"]
    assert "lifecycle" not in pod["containers"][0]
    assert {volume["name"] for volume in pod["volumes"]} == {"secret", "run", "tmp"}


def test_the_gateways_service_leads_to_it(deployment: Object) -> None:
    template = deployment["spec"]["template"]
    service = router_service(GatewayOptions(namespace="default", fleet="assistants"))
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    offered = {port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
    assert {port["port"] for port in service["spec"]["ports"]} <= offered


def test_its_variables_are_settings_that_a_router_takes(deployment: Object) -> None:
    (router,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {entry["name"]: entry["value"] for entry in router["env"] if "value" in entry}
    settings = read_settings([], {**variables, "KVPLAN_ROUTER_FLEET": "default/assistants"})
    assert settings.listen == f"0.0.0.0:{GRPC_PORT}"
    assert settings.health == f"0.0.0.0:{HEALTH_PORT}"
    assert (settings.in_flight, settings.endpoints_file) == (InFlightMode.EARLY_CLOSE, None)
