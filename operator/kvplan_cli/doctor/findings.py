"""What the doctor says: one line per check, ok, warn or fail, with the remedy. Pure data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import RenderableType
from rich.text import Text

from kvplan_cli.output import View, sentence


class Level(StrEnum):
    """How it stands."""

    OK = "ok"
    WARN = "warn"
    """It works, and a person should know; or it could not be looked at."""
    FAIL = "fail"
    """It does not work until somebody acts."""


_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


@dataclass(frozen=True)
class Finding:
    """One line.

    Attributes:
        level: how it stands.
        check: what was looked at.
        about: the object.
        what: how it stands, in words.
        remedy: what to do; empty where nothing is to be done.
    """

    level: Level
    check: str
    about: str
    what: str
    remedy: str = ""


@dataclass(frozen=True)
class Unknown:
    """Something that could not be looked at.

    Attributes:
        why: in the words of whoever refused.
    """

    why: str


def not_seen(check: str, about: str, unknown: Unknown, remedy: str = "ask for permission to read it") -> Finding:
    """The line for what could not be looked at."""
    return Finding(Level.WARN, check, about, f"not looked at: {unknown.why}", remedy)


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether nothing failed."""
    return all(finding.level is not Level.FAIL for finding in findings)


def findings_view(findings: Sequence[Finding]) -> View:
    """Every line in the order of the checks, and their number by level."""
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    document = {
        "healthy": healthy(findings),
        "counts": {level.value: count for level, count in counts.items()},
        "findings": [
            {"level": f.level.value, "check": f.check, "about": f.about, "what": f.what, "remedy": f.remedy}
            for f in findings
        ],
    }
    summary = ", ".join(f"{count} {level.value}" for level, count in counts.items())
    return View(document, [*(_line(finding) for finding in findings), sentence(summary, "bold")])


def _line(finding: Finding) -> RenderableType:
    """The finding, and its remedy below it."""
    remedy = f"\n     {finding.remedy}" if finding.remedy else ""
    line = f"{finding.check}, {finding.about}: {finding.what}{remedy}"
    return Text.assemble((f"{finding.level.value:5}", _STYLES[finding.level]), line)
