"""docs/cli.md speaks of commands and options that exist, and of every command for a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kvplan_cli.app import CLUSTER_COMMANDS, app

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
PROGRAM: Any = get_command(app)


def options_of(command: str) -> set[str]:
    return {option for parameter in PROGRAM.commands[command].params for option in parameter.opts}


def test_every_command_for_a_cluster_is_in_the_table() -> None:
    first = {name for row in re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert first == {command.__name__ for command in CLUSTER_COMMANDS} | {"plan", "diff", "explain"}


def test_every_option_that_is_spoken_of_is_one_of_some_command() -> None:
    spoken = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    known = {option for command in PROGRAM.commands.values() for option in (p for q in command.params for p in q.opts)}
    assert spoken <= known


@pytest.mark.parametrize("line", re.findall(r"^\$ kvplan (.*)$", TEXT, re.MULTILINE))
def test_every_printed_command_has_these_options(line: str) -> None:
    words = line.partition("|")[0].split()
    assert {word for word in words[1:] if word.startswith("-")} <= options_of(words[0])


def test_kubectls_options_are_those_of_every_command_for_a_cluster() -> None:
    for command in (*(c.__name__ for c in CLUSTER_COMMANDS), "plan", "diff", "explain"):
        assert {"--namespace", "-n", "--kubeconfig", "--context"} <= options_of(command)
