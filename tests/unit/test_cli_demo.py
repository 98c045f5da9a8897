"""`kvplan demo-plan`: every step runs, and the commands it prints give the same files."""

import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kvplan_cli.app import app
from kvplan_operator.model.fit_manifests import KEY_COLUMNS

TINY = Path(__file__).resolve().parents[1] / "data" / "tiny_fleet"


def small_samples(directory: Path) -> Path:
    """The tiny fleet under the name that the demo's classes belong to."""
    directory.mkdir()
    fleet = (TINY / "fleet.yaml").read_text(encoding="utf-8")
    (directory / "fleet.yaml").write_text(fleet.replace("name: tiny", "name: assistants"), encoding="utf-8")
    (directory / "nodes.yaml").write_text((TINY / "nodes.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return directory


@pytest.mark.slow
def test_the_demo_leaves_a_plan_a_table_and_pictures_that_its_commands_reproduce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVPLAN_DATA", str(tmp_path / "absent"))
    out, samples = tmp_path / "demo", small_samples(tmp_path / "samples")
    options = ["--out", str(out), "--samples", str(samples), "--traffic", "0.2", "--fewer-gpus", "1"]
    shown = CliRunner().invoke(app, ["demo-plan", *options])
    assert shown.exit_code == 0, shown.output
    assert "a generated sample" in shown.stdout
    pictures = {path.stem for path in out.glob("*.png")}
    assert pictures == {"partition", "reservation", "convergence", "table-loads"}
    assert yaml.safe_load((out / "table" / "assistants-table.yaml").read_text())["kind"] == "ConfigMap"
    assert (out / "keys-drifted.csv").read_text().splitlines()[0] == ",".join(KEY_COLUMNS)

    before = (out / "plan.yaml").read_bytes()
    [command] = [line for line in shown.stdout.splitlines() if "kvplan plan" in line and "--out" in line]
    again = CliRunner().invoke(app, shlex.split(command.split("kvplan ", 1)[1]))
    assert again.exit_code == 0
    assert (out / "plan.yaml").read_bytes() == before
