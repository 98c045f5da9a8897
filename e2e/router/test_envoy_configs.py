"""Every Envoy configuration that the repository ships or renders, checked by the real Envoy."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from e2e.harness.pki import Authority
from e2e.router.filters import manager
from e2e.router.parts import ENVOY
from kvplan_cli.app import app
from kvplan_router.envoy.bootstrap import bootstrap
from kvplan_router.envoy.endpoints import Endpoint, EndpointsFile
from kvplan_router.envoy.options import ENGINES, EnvoyOptions

pytestmark = pytest.mark.e2e

MANIFESTS = Path(__file__).parents[2] / "manifests" / "envoy"


def rendered(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["router", "envoy-config", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def endpoints(tmp_path: Path) -> str:
    file = tmp_path / "endpoints.json"
    EndpointsFile(file).write([Endpoint("127.0.0.1", 8000), Endpoint("::1", 8000)])
    return str(file)


def accepted(document: dict[str, Any], directory: Path) -> None:
    """Fail with Envoy's words unless it takes the configuration."""
    config = directory / "envoy.yaml"
    config.write_text(yaml.safe_dump(document))
    command = [str(ENVOY), "--mode", "validate", "-c", str(config), "-l", "warning"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--router", "127.0.0.1:9002", "--router", "127.0.0.1:9012"],
        ["--engines-dns", "engines.default.svc:8000"],
        ["--admin", "", "--longest-wait-ms", "0"],
        ["--listen", "[::]:8080"],
    ],
    ids=["as shipped", "two routers", "headless Service", "no admin", "IPv6"],
)
def test_envoy_takes_its_own_configuration(options: list[str], endpoints: str, tmp_path: Path) -> None:
    accepted(yaml.safe_load(rendered("--endpoints-file", endpoints, *options)), tmp_path)


def test_envoy_takes_its_own_configuration_with_tls(endpoints: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    text = rendered("--endpoints-file", endpoints, "--router-ca", str(authority.certificate))
    accepted(yaml.safe_load(text), tmp_path)


def patched(endpoints: str) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """A gateway's Envoy: a configuration, its engines' cluster, its HTTP filters."""
    document = bootstrap(EnvoyOptions(endpoints_file=endpoints))
    clusters = document["static_resources"]["clusters"]
    engines = next(cluster for cluster in clusters if cluster["name"] == ENGINES)
    return document, engines, manager(document)["http_filters"]


def test_envoy_takes_what_istio_puts_into_it(endpoints: str, tmp_path: Path) -> None:
    document, engines, filters = patched(endpoints)
    [_, envoy_filter] = yaml.safe_load_all((MANIFESTS / "istio.yaml").read_text())
    asks, obeys = (patch["patch"]["value"] for patch in envoy_filter["spec"]["configPatches"])
    filters[0] = asks
    engines |= obeys
    name = asks["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"]
    routers = next(c for c in document["static_resources"]["clusters"] if c is not engines)
    document["static_resources"]["clusters"].append(routers | {"name": name})
    accepted(document, tmp_path)


def test_envoy_takes_what_envoy_gateway_patches_into_it(endpoints: str, tmp_path: Path) -> None:
    document, engines, _ = patched(endpoints)
    policy = list(yaml.safe_load_all((MANIFESTS / "envoy-gateway.yaml").read_text()))[-1]
    [patch] = policy["spec"]["jsonPatches"]
    assert patch["operation"]["path"] == "/load_balancing_policy"
    engines["load_balancing_policy"] = patch["operation"]["value"]
    accepted(document, tmp_path)


def test_envoy_refuses_a_policy_it_does_not_know(endpoints: str, tmp_path: Path) -> None:
    document, engines, _ = patched(endpoints)
    engines["load_balancing_policy"] = {"policies": [{"typed_extension_config": {"name": "none"}}]}
    with pytest.raises(AssertionError, match="error"):
        accepted(document, tmp_path)
