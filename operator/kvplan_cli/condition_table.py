"""Writes ``docs/conditions.md``, or checks it: ``python -m kvplan_cli.condition_table [--check] FILE``.

The words come from ``kvplan_operator.api.conditions``; this module lays them out and touches one file.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from kvplan_cli.generated import Generated, difference, replace_file
from kvplan_operator.api.conditions import (
    CLASS_CONDITIONS,
    FLEET_CONDITIONS,
    PLAN_CONDITIONS,
    ConditionReason,
    ConditionType,
    Explained,
)

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
| suspended | it was when it was suspended, and what runs is still as planned (`Suspended`) |

Under every policy it is never True while a plan in force is only half applied, and never while `Stalled` is True.
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


def write_table(path: Path) -> list[Path]:
    """Write the document; returns its path."""
    return [replace_file(path, condition_table())]


def differing_table(path: Path) -> list[str]:
    """What is wrong with the document at a path, a sentence; empty where it is as generated."""
    return difference(path, condition_table(), "it differs from the API's words", REMEDY)


GENERATED = Generated("condition_table", "FILE", write_table, differing_table)


def main(arguments: list[str]) -> int:
    """Entry point; see ``Generated.run``."""
    return GENERATED.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
