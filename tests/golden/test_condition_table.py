"""The published list of conditions is the code's."""

import subprocess
import sys
from pathlib import Path

import pytest

from kvplan_cli.condition_table import REMEDY, condition_table, main
from kvplan_operator.api.conditions import ConditionReason, ConditionType

DOCUMENT = Path(__file__).parents[2] / "docs" / "conditions.md"


def test_the_document_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == condition_table(), REMEDY


def test_every_word_is_in_it_with_its_sentence() -> None:
    text = condition_table()
    for word in (*ConditionType, *ConditionReason):
        assert f"| `{word.value}` | {word.sentence} |" in text


def test_the_command_writes_a_file_that_its_check_accepts(tmp_path: Path) -> None:
    target = tmp_path / "conditions.md"
    command = [sys.executable, "-m", "kvplan_cli.condition_table"]
    subprocess.run([*command, str(target)], check=True, capture_output=True)
    assert target.read_text(encoding="utf-8") == condition_table()
    subprocess.run([*command, "--check", str(target)], check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["conditions.md"]


REFUSED = {
    "a missing file": (["--check", "absent.md"], 1, f"condition_table: absent.md: it is missing: {REMEDY}\n"),
    "another text": (
        ["--check", "other.md"],
        1,
        f"condition_table: other.md: it differs from the API's words: {REMEDY}\n",
    ),
    "no file": ([], 2, "usage: python -m kvplan_cli.condition_table [--check] FILE\n"),
    "an unknown option": (["--force"], 2, "usage: python -m kvplan_cli.condition_table [--check] FILE\n"),
    "a folder that does not exist": (
        ["none/conditions.md"],
        2,
        "condition_table: none/conditions.md: No such file or directory: give a file that can be written\n",
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_refused(
    sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, code, message = REFUSED[sentence]
    (tmp_path / "other.md").write_text("# Conditions\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    assert capsys.readouterr().err == message
