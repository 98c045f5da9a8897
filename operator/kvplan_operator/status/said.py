"""A condition before it has a time: what the renderers compute and the merge dates. Pure data."""

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan_operator.api.common import Condition, ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType, with_condition
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.model.instants import timestamp

_ABNORMAL_WHEN_TRUE = (ConditionType.CONTENDED, ConditionType.STALLED, ConditionType.FAILED)


@dataclass(frozen=True)
class Said:
    """What is said of one condition.

    Attributes:
        type: what it is about.
        status: whether it holds.
        reason: why.
        message: why and what to do, for people.
    """

    type: ConditionType
    status: ConditionStatus
    reason: ConditionReason
    message: str


@dataclass(frozen=True)
class Progress:
    """How far a rollout is, as the step planner says (``act.rollout``).

    Attributes:
        step: steps done.
        steps: steps in all.
        waiting_for: what the next one waits for; empty where nothing.
        complete: whether the groups that run are those of the plan.
        refusal: why it does not go on; None where it does.
    """

    step: int = 0
    steps: int = 0
    waiting_for: str = ""
    complete: bool = False
    refusal: Refusal | None = None

    @property
    def sentence(self) -> str:
        """Step and what it waits for."""
        waits = f", waiting for {self.waiting_for}" if self.waiting_for else ""
        return f"step {self.step} of {self.steps}{waits}"


def flag(type_: ConditionType, holds: bool, reason: ConditionReason, message: str) -> Said:
    """A condition that is True or False."""
    return Said(type_, truth(holds), reason, message)


def truth(holds: bool) -> ConditionStatus:
    """A bool as conditions spell it."""
    return ConditionStatus.TRUE if holds else ConditionStatus.FALSE


def of_refusal(refusal: Refusal) -> Said:
    """The condition that a refusal speaks of; most are good when True, a few bad."""
    return flag(refusal.condition, refusal.condition in _ABNORMAL_WHEN_TRUE, refusal.reason, refusal.message)


def as_stored(type_: ConditionType, stored: Condition) -> Said:
    """A condition said again; a reason that this version does not know is dropped."""
    reason = next((word for word in ConditionReason if word == stored.reason), ConditionReason.NOTHING_WRONG)
    return Said(type_, stored.status, reason, stored.message)


def nothing_wrong(type_: ConditionType) -> Said:
    """An abnormal condition that does not hold."""
    return flag(type_, False, ConditionReason.NOTHING_WRONG, "")


def conditions(said: Iterable[Said], generation: int, now: float) -> tuple[Condition, ...]:
    """Conditions as status carries them; the last word on a type counts, and the merge keeps older times."""
    found: tuple[Condition, ...] = ()
    for one in said:
        found = with_condition(
            found, one.type, one.status, one.reason, one.message, generation=generation, now=timestamp(now)
        )
    return found
