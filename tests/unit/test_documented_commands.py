"""The commands that docs/planning.md prints, run as printed on the sample fleet; and the minimal sample."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from kvplan_cli.app import app

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "manifests" / "samples"


def run(arguments: list[str]) -> Any:
    return CliRunner().invoke(app, arguments)


def printed_commands() -> list[list[str]]:
    text = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    block = text.partition("## Four commands")[2].split("```")[1]
    return [shlex.split(line, comments=True) for line in block.strip().splitlines()]


def trace(requests_per_second: float, prompt: int, output: int) -> str:
    """A trace with the names that `kvplan fit --columns` lists, Poisson arrivals and some shared prefixes."""
    rng = np.random.default_rng(1)
    arrivals = np.cumsum(rng.exponential(1 / requests_per_second, 1_000))
    outputs = 1 + rng.exponential(output, 1_000).astype(int)
    keys = np.minimum(rng.zipf(1.8, 1_000), 40)
    rows = (
        f"{t:.3f},{prompt + n % 400},{o},0 {k}" for n, (t, o, k) in enumerate(zip(arrivals, outputs, keys, strict=True))
    )
    return "\n".join(["arrival,prompt,output,blocks", *rows]) + "\n"


@pytest.mark.slow
def test_the_documented_commands_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("fleet.yaml", "nodes.yaml"):
        (tmp_path / name).write_text((SAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "chat.csv").write_text(trace(8, 1200, 200))
    (tmp_path / "code.csv").write_text(trace(4, 2000, 40))
    commands = printed_commands()
    assert [words[:2] for words in commands] == [["kvplan", name] for name in ("fit", "plan", "explain", "table")]
    for words in commands:
        done = run(words[1:])
        assert done.exit_code == 0, (words, done.output)
    assert (tmp_path / "fitted" / "report" / "fit.json").is_file()
    assert (tmp_path / "table" / "assistants-table.yaml").is_file()


def test_the_minimal_sample_can_be_planned() -> None:
    done = run(["plan", "-f", str(SAMPLES / "minimal"), "-f", str(SAMPLES / "nodes.yaml")])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("minimal-")


def test_a_class_column_is_detected_where_no_class_is_named(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text("arrival,prompt,output,class\n" + "".join(f"{n},5,{n % 3},{'ab'[n % 2]}\n" for n in range(20)))
    both, one = run(["fit", "--trace", str(path), "-o", "yaml"]), run(["fit", "--trace", f"x={path}", "-o", "yaml"])
    assert [done.exit_code for done in (both, one)] == [0, 0]
    assert "class: a\n" in both.stdout
    assert "class: x\n" in one.stdout
