"""Writes ``docs/conditions.md``, or checks it: ``python -m kvplan_cli.condition_table [--check] FILE``.

The words come from ``kvplan_operator.api.conditions``; this module lays them out and touches one file, which is
replaced as a whole.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from kvplan_operator.api.conditions import (
    CLASS_CONDITIONS,
    FLEET_CONDITIONS,
    PLAN_CONDITIONS,
    ConditionReason,
    ConditionType,
    Explained,
)

USAGE = "usage: python -m kvplan_cli.condition_table [--check] FILE"
REMEDY = "run `python -m kvplan_cli.condition_table docs/conditions.md`"

KINDS = {"ServingFleet": FLEET_CONDITIONS, "RequestClass": CLASS_CONDITIONS, "RoutingPlan": PLAN_CONDITIONS}

HEAD = """# Conditions

Generated from `kvplan_operator/api/conditions.py`; do not edit. The words are API: alerts, `kubectl wait`, Argo CD
and Flux depend on them. `Ready`, `Reconciling` and `Stalled` follow kstatus. A status is written only when a
condition's status, reason or wording changes, or a number in it moves by more than 10 %.

## When a ServingFleet is Ready

| policy | Ready is True when |
|---|---|
| DryRun | a candidate or an honest refusal is in status (`ProposedOnly`) |
| Approve without a digest | a candidate waits, or nothing better than the plan in force is known (`AwaitingApproval`) |
| Approve with a digest, Auto | that plan is applied, its groups serve, and every live router has the newest table |
| suspended | it was when it was suspended (`Suspended`) |

A digest in `spec.acceptedPlan` also holds under Auto: it pins that plan until it is removed.
"""


def condition_table() -> str:
    """The document."""
    kinds = "".join(f"\n## Conditions of a {kind}\n\n{_table('type', types)}" for kind, types in KINDS.items())
    return f"{HEAD}{kinds}\n## Reasons\n\n{_table('reason', ConditionReason)}"


def _table(word: str, words: Iterable[ConditionType] | Iterable[ConditionReason]) -> str:
    rows = "".join(_row(entry) for entry in words)
    return f"| {word} | meaning |\n|---|---|\n{rows}"


def _row(word: Explained) -> str:
    return f"| `{word.value}` | {word.sentence} |\n"


def main(arguments: list[str]) -> int:
    """Entry point: 0 written or current, 1 the checked file differs, 2 bad usage or an unusable path."""
    checking = arguments[:1] == ["--check"]
    paths = arguments[1:] if checking else arguments
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    try:
        return _check(Path(paths[0])) if checking else _write(Path(paths[0]))
    except OSError as error:
        wanted = "read" if checking else "written"
        sys.stderr.write(f"condition_table: {paths[0]}: {error.strerror}: give a file that can be {wanted}\n")
        return 2


def _check(path: Path) -> int:
    if path.is_file() and path.read_text(encoding="utf-8") == condition_table():
        return 0
    problem = "it differs from the API's words" if path.is_file() else "it is missing"
    sys.stderr.write(f"condition_table: {path}: {problem}: {REMEDY}\n")
    return 1


def _write(path: Path) -> int:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(condition_table(), encoding="utf-8")
    fresh.replace(path)
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
