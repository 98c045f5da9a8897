"""Every flag that a plan gives an engine is one that the real engine takes."""

from pathlib import Path

import yaml

from e2e.harness.paths import REPOSITORY
from e2e.vllm.parsing import refusals

PLAN = REPOSITORY / "tests" / "golden" / "plan" / "sample.yaml"


def planned_arguments() -> list[list[str]]:
    groups = yaml.safe_load(PLAN.read_text())["spec"]["groups"]
    return [[f"--{flag['name']}={flag['value']}" for flag in group["engineFlags"]] for group in groups]


def test_the_flags_of_the_sample_plan_are_taken(python: Path) -> None:
    lists = planned_arguments()
    assert lists
    assert refusals(python, lists) == [None] * len(lists)


def test_a_flag_that_does_not_exist_is_not(python: Path) -> None:
    (words,) = refusals(python, [["--max-num-planned-seqs=3"]])
    assert words is not None
    assert "--max-num-planned-seqs" in words
