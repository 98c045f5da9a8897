"""``manifests/envoy`` is what ``kvplan router envoy-config`` prints without options."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kvplan_cli.app import app

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests" / "envoy"
RENDERED = {
    "own-envoy.yaml": [],
    "envoy-gateway.yaml": ["--for", "envoy-gateway"],
    "istio.yaml": ["--for", "istio"],
    "inference-pool.yaml": ["--for", "inference-pool"],
}


@pytest.mark.parametrize("name", sorted(RENDERED))
def test_a_shipped_manifest_is_what_the_command_renders(name: str) -> None:
    done = CliRunner().invoke(app, ["router", "envoy-config", *RENDERED[name]])
    assert (done.exit_code, done.stdout) == (0, (MANIFESTS / name).read_text())


def test_our_own_envoy_may_wait_longer_than_the_longest_queue() -> None:
    done = CliRunner().invoke(app, ["router", "envoy-config", "--longest-wait-ms", "60000"])
    manager = yaml.safe_load(done.stdout)["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]
    asks = manager["typed_config"]["http_filters"][0]["typed_config"]
    assert (asks["message_timeout"], asks["max_message_timeout"]) == ("0.25s", "61s")


@pytest.mark.parametrize("option", ["--listen", "--admin", "--router", "--engines-dns"])
def test_a_bad_address_is_refused_with_its_remedy(option: str) -> None:
    done = CliRunner().invoke(app, ["router", "envoy-config", option, "8080"])
    assert done.exit_code == 2
    assert f"{option}: '8080' is no address: write host:port" in done.output
