"""The edges of the command: streams that refuse, options that cannot be, inputs that are too many."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kvplan_cli import planning, problems
from kvplan_cli.app import app

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny_fleet"
SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples"
KVPLAN = [sys.executable, "-m", "kvplan_cli"]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def unused_solver(*_: object, **__: object) -> None:
    raise AssertionError("nothing may be solved before the input is refused")


@pytest.fixture
def no_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "make_plan", unused_solver)


REFUSED: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "a what-if is no file to apply": (
        ("plan", "-f", TINY, "--what-if", "gpus=+2", "--out", "{tmp}/p.yaml"),
        ("--out", "fleet that does not exist", "leave one of the two out"),
    ),
    "a plan file that is a directory": (("plan", "-f", TINY, "--out", "{tmp}"), ("--out", "is a directory")),
    "pictures below a file": (("plan", "-f", TINY, "--plot", "{tmp}/file/x"), ("--plot", "file is no directory")),
    "a table below a file": (
        ("table", "-f", TINY, "--keys", "k.csv", "--out", "{tmp}/file"),
        ("--out", "file is no directory"),
    ),
    "a fit below a file": (("fit", "--trace", "chat=x.csv", "--out", "{tmp}/file/x"), ("--out", "no directory")),
    "a demo below a file": (("demo-plan", "--out", "{tmp}/file"), ("--out", "no directory")),
    "an empty input": (("plan", "-f", ""), ("-f: an empty path", "name a file")),
    "an empty plan to verify": (("verify", "-f", TINY, ""), ("an empty path",)),
    "an empty plan for the table": (
        ("table", "-f", TINY, "--keys", TINY / "nodes.yaml", "--plan", ""),
        ("column",),
    ),
    "an empty target": (("plan", "-f", TINY, "--out", ""), ("--out", "it is empty")),
    "an empty directory for pictures": (("plan", "-f", TINY, "--plot", ""), ("--plot", "it is empty")),
    "an empty plan to compare with": (("plan", "-f", TINY, "--against", ""), ("--against", "it is empty")),
    "a seed that JSON cannot carry": (("plan", "-f", TINY, "--seed", 2**53), ("--seed", str(2**53 - 1))),
    "a seed below zero": (("plan", "-f", TINY, "--seed", -(2**53)), ("--seed", "0")),
    "a trace that is not there": (
        ("plan", "-f", TINY, "--trace", "chat=/nope"),
        ("/nope: cannot be read (No such file or directory)",),
    ),
}


@pytest.mark.usefixtures("no_solve")
@pytest.mark.parametrize("case", REFUSED, ids=list(REFUSED))
def test_it_is_refused_before_any_plan_is_made(case: str, tmp_path: Path) -> None:
    arguments, words = REFUSED[case]
    (tmp_path / "file").write_text("in the way")
    done = run(*(str(argument).replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert done.exit_code == 2, done.output
    told = re.sub(r"[\s│╭╮╰╯─]+", " ", done.stderr)
    assert all(word in told for word in words), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_the_priors_refuse_names_the_fleet_and_the_field(tmp_path: Path) -> None:
    for name in ("fleet.yaml", "nodes.yaml", "classes.yaml"):
        text = (SAMPLES / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("Qwen/Qwen3-32B", "nobody/knows"), encoding="utf-8")
    done = run("plan", "-f", tmp_path)
    assert done.exit_code == 2
    assert "ServingFleet assistants: spec.model.preset is 'nobody/knows': use one of" in done.stderr


def classes(count: int) -> str:
    one = (TINY / "classes.yaml").read_text(encoding="utf-8").partition("---")[0]
    return "---\n".join(one.replace("name: chat", f"name: chat-{number}") for number in range(count))


@pytest.mark.usefixtures("no_solve")
def test_more_classes_than_a_plan_can_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "many.yaml").write_text(classes(problems.MOST_CLASSES + 1), encoding="utf-8")
    monkeypatch.setattr(problems, "build_problem", unused_solver)
    done = run("plan", "-f", TINY / "fleet.yaml", "-f", TINY / "nodes.yaml", "-f", tmp_path)
    assert done.exit_code == 2
    assert "129 RequestClasses belong to it, and a plan holds at most 128" in done.stderr


def test_too_many_documents_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("yaml.load_all", unused_solver)
    (tmp_path / "many.yaml").write_text(classes(10_000), encoding="utf-8")
    done = run("plan", "-f", tmp_path)
    assert done.exit_code == 2
    assert "it holds more than 2000 documents" in done.stderr


def test_a_narrow_locale_shows_what_it_can() -> None:
    narrow = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*KVPLAN, "explain", "-f", TINY], capture_output=True, env=narrow, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    document = [*KVPLAN, "explain", "-f", str(TINY), "-o", "yaml"]
    texts = {subprocess.run(document, capture_output=True, env=env, check=True).stdout for env in (narrow, None)}
    assert len(texts) == 1


FULL = {
    "a report": ("explain", "-f", str(TINY)),
    "a document": ("plan", "-f", str(TINY), "-o", "json"),
    "help": ("-h",),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("case", FULL, ids=list(FULL))
def test_a_full_disk_behind_stdout_is_told_by_name(case: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*KVPLAN, *FULL[case]], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    message = "kvplan: stdout: it cannot be written (No space left on device): send the output elsewhere\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.parametrize("case", FULL, ids=list(FULL))
def test_a_reader_that_leaves_ends_the_program_quietly(case: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*KVPLAN, *FULL[case]], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
