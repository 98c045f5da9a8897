"""docs/tour.md without a cluster: its commands exist, and its fleet is planned as it tells."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from e2e.harness.simulated_nodes import sample_nodes
from kvplan_cli.app import app

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "tour.md").read_text(encoding="utf-8")
PROGRAM: Any = get_command(app)


@pytest.mark.parametrize("line", sorted(set(re.findall(r"^\$ kvplan (.*)$", TEXT, re.MULTILINE))))
def test_a_command_of_the_tour_has_the_options_it_is_given(line: str) -> None:
    name, *words = line.partition("|")[0].split()
    known = {option for parameter in PROGRAM.commands[name].params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


def planned(directory: Path, chats_per_second_milli: int) -> Any:
    """The spec of the plan for the tour's fleet at a rate of chats."""
    for name in ("fleet.yaml", "classes.yaml"):
        text = (DOCS / "tour" / name).read_text(encoding="utf-8")
        (directory / name).write_text(text.replace("Milli: 4000", f"Milli: {chats_per_second_milli}"))
    nodes = [node.manifest() for node in sample_nodes()]
    for node in nodes:
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    (directory / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))
    done = CliRunner().invoke(app, ["plan", "-f", str(directory), "--output=yaml"])
    assert done.exit_code == 0, done.output
    return yaml.safe_load(done.stdout)["spec"]


MORNING: dict[str, int] = {"tp8": 3}
EVENING: dict[str, int] = {"tp4": 4, "tp8": 1}


def test_a_morning_is_planned_on_large_groups_with_the_reservations_that_the_tour_explains(tmp_path: Path) -> None:
    spec = planned(tmp_path, 4_000)
    classes = {entry["name"]: entry for entry in spec["classes"]}
    assert {group["configuration"]: group["replicas"] for group in spec["groups"]} == MORNING
    assert (classes["chat"]["reservationTokens"], classes["code"]["reservationTokens"]) == (3_424, 4_096)
    assert classes["chat"]["routes"][0]["reservationTokens"] == 2_912


@pytest.mark.slow
def test_five_times_the_chats_make_two_large_groups_four_small_ones(tmp_path: Path) -> None:
    groups = planned(tmp_path, 20_000)["groups"]
    assert {group["configuration"]: group["replicas"] for group in groups} == EVENING
