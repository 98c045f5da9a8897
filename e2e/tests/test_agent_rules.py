"""The agent's pure rules: paths, variables, restarts, phases, quantities, files."""

from pathlib import Path
from typing import Any

import pytest

from e2e.agent import atomic, expansion, quantities, restarts, rewriting
from e2e.agent.content import File
from e2e.agent.errors import CannotRun
from e2e.agent.images import Image, words
from e2e.agent.status import phase

REPLACEMENTS = {"/etc/config": "/pod/a", "/etc/config/keys": "/pod/b", rewriting.EVERY_ADDRESS: "127.64.0.9"}


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("/etc/config", "/pod/a"),
        ("/etc/config/x.yaml", "/pod/a/x.yaml"),
        ("/etc/config/keys/tls.key", "/pod/b/tls.key"),
        ("--config=/etc/config/x", "--config=/pod/a/x"),
        ("/etc/config:/etc/config/keys", "/pod/a:/pod/b"),
        ("file:///etc/config/x", "file:///pod/a/x"),
        ("/etc/configuration", "/etc/configuration"),
        ("/etc/config.d", "/etc/config.d"),
        ("/opt/etc/config", "/opt/etc/config"),
        ("http://host/etc/config", "http://host/etc/config"),
        ("0.0.0.0:8000", "127.64.0.9:8000"),
        ("10.0.0.0", "10.0.0.0"),
    ],
)
def test_a_path_is_rewritten_where_it_stands_for_itself(text: str, rewritten: str) -> None:
    assert rewriting.rewriter(REPLACEMENTS)(text) == rewritten


def test_a_real_path_under_a_mount_path_stays_what_it_is() -> None:
    """A pod that mounts /tmp, on a machine whose pods live below /tmp."""
    real = "/tmp/bed/pods/1"  # noqa: S108 - a path in a text
    rewrite = rewriting.rewriter({"/tmp": f"{real}/volumes/tmp", real: real})  # noqa: S108
    assert rewrite(f"{real}/kubeconfig /tmp/x") == f"{real}/kubeconfig {real}/volumes/tmp/x"


def test_without_mounts_nothing_is_rewritten() -> None:
    assert rewriting.rewriter({})("/etc/config") == "/etc/config"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)$(A)y", "x11y"),
        ("$(B)", "$(B)"),
        ("$$(A)", "$(A)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$$$(A)", "$1"),
        ("$(A", "$(A"),
    ],
)
def test_references_to_variables_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expansion.expand(text, {"A": "1"}) == expanded


def test_pauses_before_restarts_double_up_to_five_minutes() -> None:
    assert [restarts.pause(ends) for ends in range(1, 9)] == [0, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_the_restart_policy_decides(policy: str, code: int, again: bool) -> None:
    assert restarts.starts_again(policy, code) is again


WAITING: dict[str, Any] = {"state": {"waiting": {}}}
RUNNING: dict[str, Any] = {"state": {"running": {}}}
DONE: dict[str, Any] = {"state": {"terminated": {"exitCode": 0}}}
FAILED: dict[str, Any] = {"state": {"terminated": {"exitCode": 1}}}
CRASHING: dict[str, Any] = {"state": {"waiting": {}}, "lastState": FAILED["state"]}


@pytest.mark.parametrize(
    ("policy", "init", "containers", "ended", "expected"),
    [
        ("Always", [], [WAITING], False, "Pending"),
        ("Always", [], [RUNNING, WAITING], False, "Pending"),
        ("Always", [], [RUNNING, RUNNING], False, "Running"),
        ("Always", [], [RUNNING, CRASHING], False, "Running"),
        ("Always", [], [DONE], False, "Running"),
        ("OnFailure", [], [DONE, FAILED], False, "Running"),
        ("OnFailure", [], [DONE, DONE], False, "Succeeded"),
        ("Never", [], [DONE, RUNNING], False, "Running"),
        ("Never", [], [DONE, FAILED], False, "Failed"),
        ("Never", [FAILED], [WAITING], True, "Failed"),
        ("Always", [], [DONE], True, "Succeeded"),
        ("Always", [], [FAILED, DONE], True, "Failed"),
    ],
)
def test_the_phase_follows_from_the_containers(
    policy: str, init: list[dict[str, Any]], containers: list[dict[str, Any]], ended: bool, expected: str
) -> None:
    assert phase(policy, init, containers, ended=ended) == expected


@pytest.mark.parametrize(
    ("quantity", "divisor", "units"),
    [("1Gi", "1Mi", "1024"), ("500m", "1", "1"), ("500m", "1m", "500"), ("1e3", "1", "1000"), ("2k", "0", "2000")],
)
def test_quantities_are_told_in_units_of_the_divisor(quantity: str, divisor: str, units: str) -> None:
    assert quantities.in_units(quantity, divisor) == units


TABLE = {"kvplan/engine": Image(before=["engine"], after=["--quiet"])}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"image": "kvplan/engine:1.2"}, ["engine", "--quiet"]),
        ({"image": "registry.example:5000/kvplan/engine@sha256:ab", "args": ["-x"]}, ["engine", "-x", "--quiet"]),
        ({"image": "unknown:1", "command": ["run"], "args": ["-x"]}, ["run", "-x"]),
    ],
)
def test_an_image_adds_its_words(container: dict[str, Any], expected: list[str]) -> None:
    assert words(container, TABLE) == expected


def test_an_unknown_image_without_a_command_cannot_run() -> None:
    with pytest.raises(CannotRun, match="image 'unknown:1' is not in the agent's table"):
        words({"image": "unknown:1", "args": ["-x"]}, TABLE)


def test_the_files_of_a_volume_change_all_at_once(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    atomic.write(volume, {"a": File(b"1", 0o644), "dir/b": File(b"1", 0o600)})
    reader = (volume / "..data").resolve()
    assert (volume / "dir" / "b").stat().st_mode & 0o777 == 0o600
    atomic.write(volume, {"a": File(b"2", 0o644)})
    assert (volume / "a").read_bytes() == b"2"
    assert sorted(entry.name for entry in volume.iterdir() if not entry.name.startswith("..")) == ["a"]
    assert not reader.exists(), "the old files are gone"


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out"])
def test_no_file_is_written_outside_its_volume(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="leads out of its volume"):
        atomic.write(tmp_path / "volume", {name: File(b"x", 0o644)})
