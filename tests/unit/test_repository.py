"""Guards on the repository's own shape."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kvplan_operator", "kvplan_cli", "kvplan_solver")


@pytest.mark.parametrize("root", ["operator", "solver", "router"])
def test_a_source_root_is_no_package(root: str) -> None:
    assert (ROOT / root).is_dir()
    assert not (ROOT / root / "__init__.py").exists()


@pytest.mark.parametrize("module", ["collections", "asyncio", "operator", *PACKAGES])
def test_a_fresh_interpreter_in_the_root_can_import(module: str) -> None:
    command = [sys.executable, "-c", f"import {module}; print({module}.__name__)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, module), done.stderr


@pytest.mark.parametrize(
    "module", ["kvplan_solver.budget", "kvplan_solver.cacheroute.table", "kvplan_solver.cacheroute.keys"]
)
def test_what_the_router_imports_needs_the_standard_library_alone(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('numpy', 'highspy', 'pydantic', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_readme_names_the_two_commands_that_the_makefile_has() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert f"\n{target}:" in makefile


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()
