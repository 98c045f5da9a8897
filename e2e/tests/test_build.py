"""The cache of built binaries: keyed by content, whole or absent, built once, and after what the caller brings."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.harness import assets, build, recipes
from e2e.harness.errors import BuildFailed
from e2e.harness.recipes import Recipe
from e2e.tests.support import ended, eventually

pytestmark = pytest.mark.e2e

GO_MOD = "module example.test/hello\n\ngo 1.26.0\n\nrequire example.test/hello v1.0.0\n"
HELLO = 'package main\n\nvar version = "unknown"\n\nfunc main() { println("hello", version) }\n'

# Builds the recipe of the module directory in argv; a stand-in for the toolchain may be named by the environment.
BUILDER = """
import os, sys
from pathlib import Path
from e2e.harness import build, recipes
recipes.MODULES = Path(sys.argv[1])
if os.environ.get("STAND_IN_GO"):
    build.go_command = lambda: Path(os.environ["STAND_IN_GO"])
build.ensure(recipes.Recipe("hello", "example.test/hello", {"hello": "."}, {}))
"""


@pytest.fixture
def hello(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A one-file component in a cache of its own."""
    module = tmp_path / "modules" / "hello"
    module.mkdir(parents=True)
    (module / "go.mod").write_text(GO_MOD)
    (module / "go.sum").write_text("")
    (module / "main.go").write_text(HELLO)
    monkeypatch.setenv("KVPLAN_E2E_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipes, "MODULES", tmp_path / "modules")
    return Recipe("hello", "example.test/hello", {"hello": "."}, {"main.version": "{version}"})


def stand_in_go(tmp_path: Path, body: str) -> Path:
    go = tmp_path / "go"
    go.write_text(f"#!/bin/sh\n{body}\n")
    go.chmod(0o755)
    return go


def builder(tmp_path: Path, go: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILDER, str(tmp_path / "modules")]
    environment = {**os.environ, "STAND_IN_GO": str(go)}
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)


# `go build ... -o FILE PACKAGE`: the last argument but one names the file.
WRITE_HALF = 'for a; do f=$b; b=$a; done; printf half > "$f"'


def test_every_recipe_has_its_module_and_versions_in_the_repository() -> None:
    for recipe in recipes.ALL:
        assert recipe.version.startswith("v")
        tools = (recipe.module / "go.mod").read_text()
        for package in recipe.packages.values():
            assert f"tool {package}\n" in tools or f"\t{package}\n" in tools


def test_a_binary_is_built_with_its_version_and_found_again(hello: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = build.ensure(hello)
    said = subprocess.run([directory / "hello"], capture_output=True, text=True, check=True).stderr
    assert said == "hello v1.0.0\n"
    cost = build.build_costs(hello)["hello"]
    assert cost.seconds > 0
    assert cost.processor_seconds > 0
    monkeypatch.setattr(build, "go_command", lambda: pytest.fail("it was built already"))
    assert build.ensure(hello) == directory


def test_another_sum_or_another_flag_is_another_key(hello: Recipe) -> None:
    first = hello.key
    (hello.module / "go.sum").write_text("example.test/other v1.0.0 h1:x=\n")
    second = hello.key
    flags = Recipe(hello.name, hello.version_of, hello.packages, {"main.version": "other"}).key
    assert len({first, second, flags}) == 3


def test_a_killed_build_leaves_no_binary_and_the_next_one_builds_it(hello: Recipe, tmp_path: Path) -> None:
    started = tmp_path / "started"
    go = stand_in_go(tmp_path, f"{WRITE_HALF}; echo $$ > {started}.new; mv {started}.new {started}; exec sleep 600")
    with builder(tmp_path, go) as victim:
        eventually(started.exists, "the build runs")
        victim.send_signal(signal.SIGKILL)
    assert ended(int(started.read_text())), "the compiler outlived its builder"
    assert not (hello.directory / "hello").exists()
    assert (build.ensure(hello) / "hello").stat().st_size > 100_000


def test_builders_at_once_build_once(hello: Recipe, tmp_path: Path) -> None:
    count = tmp_path / "count"
    go = stand_in_go(tmp_path, f"echo built >> {count}; {WRITE_HALF}")
    builders = [builder(tmp_path, go) for _ in range(3)]
    for process in builders:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert count.read_text() == "built\n"


def test_a_build_that_fails_says_which(hello: Recipe) -> None:
    (hello.module / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(BuildFailed, match=r"hello v1\.0\.0 did not build: go build ended with 1"):
        build.ensure(hello)
    assert not (hello.directory / "hello").exists()


def test_an_unknown_component_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["etdc"]) == 2
    known = "etcd, kwok, kubernetes, prometheus, source-controller, kustomize-controller, helm, endpoint-picker"
    assert capsys.readouterr().err == f"unknown component etdc: choose from {known}\n"


def test_kubebuilder_assets_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = tmp_path / "kubectl"
    brought.write_text("#!/bin/sh\n")
    brought.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setattr(assets, "ensure", lambda recipe, *_: tmp_path / "built" / recipe.name)
    assert assets.binary("kubectl") == brought
    assert assets.binary("etcd") == tmp_path / "built" / "etcd" / "etcd"
