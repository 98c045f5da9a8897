"""What a gate says: go, or the first refusal with the condition, reason and message that people read. Pure data."""

from dataclasses import dataclass

from kvplan_operator.api.conditions import ConditionReason, ConditionType


@dataclass(frozen=True)
class Refusal:
    """Why a plan is not put in force now.

    Attributes:
        condition: the condition of the fleet that says so.
        reason: its reason.
        message: why, with the numbers, and what a person can do.
        stalled: whether only a person can go on.
    """

    condition: ConditionType
    reason: ConditionReason
    message: str
    stalled: bool = False


@dataclass(frozen=True)
class Verdict:
    """The outcome of the chain.

    Attributes:
        digest: of the plan judged.
        refusal: the first refusal; None lets the plan through.
    """

    digest: str
    refusal: Refusal | None = None

    @property
    def go(self) -> bool:
        """Whether the plan may be put in force."""
        return self.refusal is None
