"""How a part of a rollout says that it cannot be done: an error that carries what people will read.

Inputs: a reason and a sentence with object, field, value and remedy. Output: ``RolloutRefused``, which the step planner
catches and shows as a ``Refusal``. Pure.
"""

from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.errors import OperatorError
from kvplan_operator.gate.verdict import Refusal


class RolloutRefused(OperatorError):
    """The plan cannot be put in force as things are."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


def refusal(reason: ConditionReason, message: str, *, stalled: bool = True) -> Refusal:
    """What the fleet's condition RolloutComplete will say."""
    return Refusal(ConditionType.ROLLOUT_COMPLETE, reason, message, stalled)


def refused(reason: ConditionReason, message: str) -> RolloutRefused:
    """The error for something that only a person can mend."""
    return RolloutRefused(refusal(reason, message))
