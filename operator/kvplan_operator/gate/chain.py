"""The gate: one list of checks, read top to bottom; the first refusal counts.

Input: a ``GateInput``. Output: a ``Verdict``. Which checks a plan must pass depends on how it came to be pursued:
the policy's own pick passes all; a digest that people or git accepted, a return to the last good plan and a change
under way pass those that protect the cluster, not those that weigh whether a change is worth it. Pure. Source: 04 §4.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kvplan_operator.gate import checks
from kvplan_operator.gate.gate_input import GateInput
from kvplan_operator.gate.verdict import Refusal, Verdict
from kvplan_operator.gate.window import window_open
from kvplan_operator.plan.choice import Standing

Check = Callable[[GateInput], Refusal | None]

_PICKED = frozenset({Standing.PROPOSED})
_NEW = frozenset({Standing.PROPOSED, Standing.ACCEPTED, Standing.RETURNING})
_ALL = frozenset(Standing)


@dataclass(frozen=True)
class Gate:
    """One check and the standings it judges."""

    check: Check
    standings: frozenset[Standing]


GATES = (
    Gate(checks.not_suspended, _ALL),
    Gate(checks.metrics_fresh, _PICKED),
    Gate(checks.certificate_holds, _NEW),
    Gate(checks.inventory_unchanged, _ALL),
    Gate(checks.accepted_or_policy, _ALL),
    Gate(window_open, _NEW),
    Gate(checks.dwelt, _PICKED),
    Gate(checks.improves_enough, _PICKED),
    Gate(checks.restart_budget_left, _PICKED | {Standing.IN_FORCE}),
    Gate(checks.no_foreign_writer, _ALL),
    Gate(checks.path_exists, _ALL),
)
"""In the order of 04-control-loop §4. The window is for the start of a change: one under way is finished."""


def judge(plan: GateInput) -> Verdict:
    """Whether the plan may be put in force (or further in force) now."""
    for gate in GATES:
        refusal = gate.check(plan) if plan.standing in gate.standings else None
        if refusal is not None:
            return Verdict(plan.digest, refusal)
    return Verdict(plan.digest)


def in_force(current: str | None, verdict: Verdict | None) -> str | None:
    """Digest of the plan in force after the verdict: a plan that was let through, else the one before."""
    return verdict.digest if verdict is not None and verdict.go else current
