"""The process as a whole: what it loads, what kopf is asked for, how it ends."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import kopf

from kvplan_operator.reconcile import handlers
from kvplan_operator.reconcile.shell import Shell
from kvplan_operator.settings import PREFIX, settings_from

NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
    "clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {}}],
}
"""A kubeconfig of a cluster that is not there."""
DOCUMENT = Path(__file__).parents[2] / "docs" / "operator.md"


def test_the_controller_loads_no_solver_library() -> None:
    code = "import sys, kvplan_operator.main; print([n for n in ('highspy', 'cvxpy') if n in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"


def test_a_port_that_is_taken_ends_the_process_with_its_setting_named(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(json.dumps(NOWHERE))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KVPLAN_LISTEN": listen}
        done = subprocess.run(
            [sys.executable, "-m", "kvplan_operator.main"],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == handlers.FAILED == 1
    assert f"the setting listen (KVPLAN_LISTEN) is {listen}" in done.stderr
    assert "Address already in use" in done.stderr


def test_no_two_processes_write_events_or_hold_the_lease_under_one_name() -> None:
    shells = [Shell(settings_from("", {"KVPLAN_LEASE_IDENTITY": "operator-0"})) for _ in range(2)]
    assert shells[0].identity != shells[1].identity
    assert all(shell.identity.startswith("operator-0-") for shell in shells)


def test_kopf_is_asked_for_events_alone() -> None:
    registry = kopf.get_default_registry()
    assert len(registry._watching.get_all_handlers()) == 3
    for others in (registry._indexing, registry._changing, registry._spawning, registry._webhooks):
        assert list(others.get_all_handlers()) == []


def test_kopf_neither_peers_nor_posts_nor_scans() -> None:
    settings = kopf.OperatorSettings()
    handlers.configure_kopf(settings)
    assert settings.peering.standalone
    assert not settings.posting.enabled
    assert settings.scanning.disabled


def test_the_prefix_of_variables_is_the_one_in_the_documents() -> None:
    assert f"{PREFIX}LEASE_DURATION_SECONDS" in DOCUMENT.read_text()
