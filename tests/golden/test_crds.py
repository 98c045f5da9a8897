"""The checked-in schemas are those of the types, and fit into the API server."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kvplan_cli import crds
from kvplan_operator.api.crdgen import crd_files
from kvplan_operator.api.labels import GROUP

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "crds"


@pytest.mark.parametrize("name", sorted(crd_files()))
def test_a_checked_in_schema_is_the_generated_one(name: str) -> None:
    assert (CRDS / name).read_text(encoding="utf-8") == crd_files()[name], "run `make crds`"


def test_every_schema_file_belongs_to_a_kind() -> None:
    assert sorted(path.name for path in CRDS.glob("*.yaml")) == sorted(crd_files())


@pytest.mark.parametrize("name", sorted(crd_files()))
def test_a_schema_is_smaller_than_150_kib(name: str) -> None:
    assert len(crd_files()[name].encode()) < 150 * 1024


def test_kinds_are_namespaced_with_a_category_short_names_and_a_status_that_starts_unobserved() -> None:
    specs = [yaml.safe_load(text)["spec"] for text in crd_files().values()]
    assert {spec["names"]["shortNames"][0] for spec in specs} == {"fleet", "rclass", "rplan"}
    for spec in specs:
        assert (spec["scope"], spec["group"], spec["names"]["categories"]) == (
            "Namespaced",
            GROUP,
            ["kvplan"],
        )
        (version,) = spec["versions"]
        assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        assert status["default"] == {"observedGeneration": -1}


def test_the_writer_makes_the_directory_and_writes_the_same_bytes_in_a_fresh_process(tmp_path: Path) -> None:
    target = tmp_path / "made" / "crds"
    command = [sys.executable, "-m", "kvplan_cli.crds", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {path.name: path.read_text(encoding="utf-8") for path in target.iterdir()} == crd_files()
    assert done.stdout.splitlines() == [str(target / name) for name in crd_files()]


def test_the_writer_without_a_directory_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main([]) == 2
    assert crds.GENERATED.usage in capsys.readouterr().err


def test_the_writer_names_a_directory_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert crds.main([str(blocked)]) == 2
    assert capsys.readouterr().err == f"crds: {blocked}: File exists: give a directory that can be written\n"


def test_the_check_names_every_file_that_differs_and_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert crds.main([str(tmp_path)]) == crds.main(["--check", str(tmp_path)]) == 0
    first, second, _ = sorted(tmp_path.glob("*.yaml"))
    first.write_text(first.read_text(encoding="utf-8") + "# by hand\n", encoding="utf-8")
    second.unlink()
    (tmp_path / "stranger.yaml").touch()
    capsys.readouterr()
    assert crds.main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"crds: {first}: it differs from the API types: run `make crds`",
        f"crds: {second}: it is missing: run `make crds`",
        f"crds: {tmp_path}/stranger.yaml: it belongs to no kind: remove it",
    ]
    assert first.read_text(encoding="utf-8").endswith("# by hand\n")


@pytest.mark.parametrize("arguments", [[], ["--check"], ["--checks", "crds"], ["crds", "more"]])
def test_other_arguments_are_answered_with_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main(arguments) == 2
    assert capsys.readouterr().err == f"{crds.GENERATED.usage}\n"
