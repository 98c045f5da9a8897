"""The images' installation steps in a clean root, without docker: what the locks name is enough, and nothing else is.

Each target gets a virtual environment of its own, as its stage of the Dockerfile makes one, in an empty home.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.harness.paths import REPOSITORY, cache

pytestmark = pytest.mark.slow  # downloads what the images hold

INSTALL = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
PLANNERS_LIBRARIES = {"highspy", "numpy", "cvxpy", "kopf"}


def run(*command: str, home: Path, where: Path | None = None) -> str:
    """Run a command with nothing of this environment but the package index and what was downloaded before."""
    variables = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PIP_CACHE_DIR": str(cache() / "pip")}
    variables |= _index()
    done = subprocess.run(command, env=variables, cwd=where or home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _index() -> dict[str, str]:
    """Where packages come from is the machine's business."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}


def environment(directory: Path, lock: str) -> Path:
    """A fresh environment with one lock in it; returns its interpreter."""
    run(sys.executable, "-m", "venv", str(directory / lock), home=directory)
    python = directory / lock / "bin" / "python"
    requirements = REPOSITORY / "requirements" / f"{lock}.txt"
    run(str(python), *INSTALL, "--require-hashes", "--requirement", str(requirements), home=directory)
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the locked build backend."""
    directory = tmp_path_factory.mktemp("wheel")
    python = environment(directory, "build")
    target = directory / "wheels"
    build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", f"--wheel-dir={target}", "."]
    run(str(python), *build, home=directory, where=REPOSITORY)
    (found,) = target.glob("kvplan-*.whl")
    return found


def install(directory: Path, lock: str, wheel: Path) -> Path:
    """An image's environment; returns the folder of its commands."""
    python = environment(directory, lock)
    run(str(python), *INSTALL, "--no-deps", "--no-index", str(wheel), home=directory)
    return python.parent


def packages(commands: Path, home: Path) -> set[str]:
    found = json.loads(run(str(commands / "python"), "-m", "pip", "list", "--format=json", home=home))
    return {package["name"].lower() for package in found}


def test_the_operators_image_runs_what_it_is_for(tmp_path: Path, wheel: Path) -> None:
    commands = install(tmp_path, "operator", wheel)
    assert run(str(commands / "kvplan-operator"), "--version", home=tmp_path).startswith("kvplan ")
    assert "KVPLAN_CONFIG" in run(str(commands / "kvplan-operator"), "--help", home=tmp_path)
    worker = "import kvplan_operator.reconcile.solver_worker, kvplan_solver.certified, highspy, cvxpy"
    run(str(commands / "python"), "-c", worker, home=tmp_path)
    assert "pytest" not in packages(commands, tmp_path)


def test_the_routers_image_runs_without_the_planners_libraries(tmp_path: Path, wheel: Path) -> None:
    commands = install(tmp_path, "router", wheel)
    assert "--endpoints-file" in run(str(commands / "kvplan-router"), "--help", home=tmp_path)
    run(str(commands / "python"), "-m", "kvplan_router.envoy.drain", "--help", home=tmp_path)
    assert packages(commands, tmp_path).isdisjoint(PLANNERS_LIBRARIES)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the commands that releases need."""
    return environment(tmp_path_factory.mktemp("tools"), "tools").parent


def test_the_dockerfile_passes_the_lint(tools: Path, tmp_path: Path) -> None:
    assert run(str(tools / "hadolint"), str(REPOSITORY / "Dockerfile"), home=tmp_path) == ""


@pytest.mark.parametrize("image", ["operator", "router"])
def test_the_bill_of_materials_names_every_package_of_an_image(tools: Path, image: str, tmp_path: Path) -> None:
    lock = REPOSITORY / "requirements" / f"{image}.txt"
    bill = json.loads(
        run(str(tools / "cyclonedx-py"), "requirements", "--output-reproducible", str(lock), home=tmp_path)
    )
    pinned = set(re.findall(r"^([a-z0-9-]+)==([^ ]+)", lock.read_text(), re.MULTILINE))
    assert {(part["name"], part["version"]) for part in bill["components"]} == pinned
    assert all(part["purl"].startswith("pkg:pypi/") for part in bill["components"])
