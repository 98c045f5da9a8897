"""The README's first example is what the command prints.

``KVPLAN_WRITE_DOCS=1`` writes it anew instead.
"""

import os
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kvplan_cli.app import app

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COMMAND = ["plan", "-f", "manifests/samples"]
BEGIN, END = f"$ kvplan {' '.join(COMMAND)}\n", "```\n"
FIRST_LEFT_OUT = "Reserved"


def printed() -> str:
    """The plan's head, groups and classes."""
    done = CliRunner().invoke(app, COMMAND, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    shown = takewhile(lambda line: line != FIRST_LEFT_OUT, (line.rstrip() for line in done.stdout.splitlines()))
    return "\n".join(shown).rstrip() + "\n"


def test_the_first_example_of_the_readme_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    stated, end, after = rest.partition(END)
    if os.environ.get("KVPLAN_WRITE_DOCS"):
        README.write_text(before + begin + printed() + end + after, encoding="utf-8")
    else:
        assert stated == printed(), "if the change is wanted: KVPLAN_WRITE_DOCS=1 pytest tests/golden/test_readme.py"
