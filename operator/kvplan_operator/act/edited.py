"""Created sets whose pod template somebody changed: the plan's template wins under another name, group by group.

kvplan never patches the template of a created set, so a Deployment whose revision is not its first was changed by
somebody else. It is then like any set that the plan does not want: drained and emptied one group at a time while the
set that is wanted grows beside it, under the second of its two names. Comparing contents instead would not do: the API
server spells defaults and quantities in its own way. A template that was changed and changed back counts as changed.

Inputs: a target, the sets that exist, the time. Output: the target under the name that is free for it. Where both names
hold changed templates kvplan stops (``ForeignWriter``). LeaderWorkerSets tell no revision: they stay as they are. Pure.
"""

import hashlib
from collections.abc import Mapping

from kvplan_operator.act.engine_sets import SetKind, TargetSet
from kvplan_operator.act.manifests import renamed
from kvplan_operator.act.notes import instead_of
from kvplan_operator.act.observed_groups import ObservedSet
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.gate.verdict import Refusal


def under_its_name(target: TargetSet, sets: Mapping[str, ObservedSet], now: float) -> TargetSet:
    """A target under the name that its set has, or may have.

    Args:
        target: as rendered, under its first name.
        sets: that exist, by name.
        now: seconds since the epoch.

    Raises:
        RolloutRefused: sets of both names were changed.
    """
    if target.adopted or target.kind is SetKind.WORKER_SET:
        return target
    second = renamed(target, second_name(target.name))
    for candidate in (target, second):
        if candidate.name in sets and not sets[candidate.name].edited:
            return candidate
    changed = [sets[name] for name in (target.name, second.name) if name in sets]
    if len(changed) == 2:
        raise RolloutRefused(_fought_over(target.name, second.name))
    free = second if target.name in sets else target
    return instead_of(free, changed[0], now) if changed else free


def second_name(name: str) -> str:
    """The other name of a set: another digest, as long as the first."""
    words, _, told_apart = name.rpartition("-")
    return f"{words}-{hashlib.sha256(name.encode()).hexdigest()[: len(told_apart)]}"


def _fought_over(first: str, second: str) -> Refusal:
    message = (
        f"Deployments {first} and {second}: somebody changes their pod templates: change engine.templateRef or the "
        "fleet instead, and delete one of the two"
    )
    return Refusal(ConditionType.CONTENDED, ConditionReason.FOREIGN_WRITER, message, stalled=True)
