"""Whether the commands of a step may be carried out."""

import pytest

from kvplan_operator.act.commands import Command, ObjectRef, ScaleSet, StartDrain
from kvplan_operator.act.rollout import RolloutStep
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.gate.verdict import Refusal, Verdict
from kvplan_operator.reconcile.deciding import lets

DRAIN = StartDrain(ObjectRef("Pod", "p", "u", ""), 1)
GROW = ScaleSet(ObjectRef("Deployment", "d", "u", "1"), 1, 2, "plan")
SHRINK = ScaleSet(ObjectRef("Deployment", "d", "u", "1"), 2, 1, "plan", leaving=DRAIN.pod)

CASES: dict[str, tuple[ConditionReason | None, Command, bool]] = {
    "a plan that the gate lets through": (None, DRAIN, True),
    "a plan that it refuses": (ConditionReason.FOREIGN_WRITER, GROW, False),
    "another drain on a spent budget": (ConditionReason.RESTART_BUDGET_SPENT, DRAIN, False),
    "the end of a drain that had begun": (ConditionReason.RESTART_BUDGET_SPENT, SHRINK, True),
    "the group that comes in its place": (ConditionReason.RESTART_BUDGET_SPENT, GROW, True),
}


def test_a_held_step_takes_nothing_away_that_it_has_not_begun_to_take() -> None:
    step = RolloutStep(
        commands=(DRAIN,),
        draining=frozenset({"tp1-0", "tp1-1"}),
        begins=frozenset({"tp1-1"}),
        unlisted=frozenset({DRAIN.pod.uid, "going"}),
    )
    assert step.held.draining == {"tp1-0"}
    assert step.held.unlisted == {"going"}


@pytest.mark.parametrize("sentence", CASES)
def test_a_step_goes_on_for(sentence: str) -> None:
    reason, command, goes = CASES[sentence]
    refusal = None if reason is None else Refusal(ConditionType.PLAN_ACCEPTED, reason, "why")
    assert lets(Verdict("0" * 64, refusal), RolloutStep(commands=(command,))) is goes
