"""docs/evidence.md names commands that exist and pages that say what they are said to."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kvplan_cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXT = (DOCS / "evidence.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"^\|[^|]*\|[^|]*\| `([^`]+)` \|", TEXT, re.MULTILINE)))
PROGRAM: Any = get_command(app)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_names_things_that_exist(line: str) -> None:
    for command in line.split("; "):
        match command.split():
            case ["pytest", *paths]:
                assert all((ROOT / path).exists() for path in paths)
            case ["make", target, *_]:
                assert re.search(rf"^{target}:", makefiles(), re.MULTILINE)
            case ["python", "-m", module, *_]:
                assert find_spec(module) is not None
            case ["kvplan", name, *_]:
                assert name in PROGRAM.commands
            case other:
                assert other in (["rm", "-rf", ".cache/controlplane"], ["go", "clean", "-cache"])


def makefiles() -> str:
    return "".join((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "e2e/controlplane.mk"))


@pytest.mark.parametrize("page", sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")))
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        assert ((DOCS / page).parent / target).exists(), target


def test_every_page_is_in_the_index_of_the_documentation() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for path in DOCS.glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in index, path.name
