"""Which plan a fleet pursues now, under its policy, and what to say of the one that waits.

Inputs: the fleet's ``Shelf`` of plans, each plan ``Judged`` today, what became of the last change (``Return``).
Output: a frozen ``Choice`` for the gate. A digest that people or git accepted beats the policy, except in DryRun,
which changes nothing. Where nothing better may be pursued, the plan in force stays. Pure. Source: 01-api (Plan
policy).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.rollback import Return, ReturnState
from kvplan_operator.plan.standing import Shelf


class Standing(StrEnum):
    """How a plan came to be pursued; it decides which gates it must pass."""

    IN_FORCE = "InForce"
    """It passed them and is being put in force, or is."""
    ACCEPTED = "Accepted"
    """People or git accepted its digest."""
    RETURNING = "Returning"
    """It served well before the plan in force did not."""
    PROPOSED = "Proposed"
    """The policy picked it."""


@dataclass(frozen=True)
class Choice:
    """What to pursue, with the words for the condition PlanAccepted.

    Attributes:
        target: digest of the plan; None where there is none yet.
        standing: how it came to be pursued; None without a target.
        accepted: whether its digest stands in ``spec.acceptedPlan``.
        status: of the condition.
        reason: of the condition.
        message: of the condition.
        stalled: whether only a person can go on.
    """

    target: str | None
    standing: Standing | None
    accepted: bool
    status: ConditionStatus
    reason: ConditionReason
    message: str
    stalled: bool = False


def choose(mode: PolicyMode, shelf: Shelf, judged: Mapping[str, Judged], returning: Return | None = None) -> Choice:
    """The plan to pursue.

    Args:
        mode: ``spec.planPolicy.mode``.
        shelf: the fleet's plans.
        judged: by digest; a plan that could not be judged today is missing, and the gate refuses it.
        returning: what is to be done about service that is worse than forecast; None: nothing.
    """
    if mode is PolicyMode.DRY_RUN:
        return _stay(shelf, ConditionReason.PROPOSED_ONLY, _proposal(shelf, "planPolicy.mode is DryRun"))
    if shelf.accepted is not None:
        return _by_digest(shelf, shelf.accepted, judged.get(shelf.accepted))
    if mode is PolicyMode.APPROVE:
        return _without_approval(shelf, returning)
    return _by_policy(shelf, judged, returning)


def _by_digest(shelf: Shelf, digest: str, judged: Judged | None) -> Choice:
    if digest not in shelf.plans:
        known = ", ".join(sorted(plan.metadata.name for plan in shelf.plans.values())) or "none"
        message = f"no RoutingPlan has digest {digest}: create it or accept another; there are {known}"
        return _stay(shelf, ConditionReason.UNKNOWN_DIGEST, message, stalled=True)
    name = shelf.name_of(digest)
    broken = judged is not None and not judged.holds
    if digest == shelf.current:
        message = f"RoutingPlan {name} is accepted and in force"
        if judged is not None and broken:
            message = f"RoutingPlan {name} is in force but no longer fits: {_first(judged)}; {_another(shelf)}"
        reason = ConditionReason.STALE_PLAN if broken else ConditionReason.DIGEST_ACCEPTED
        return Choice(digest, Standing.IN_FORCE, True, ConditionStatus.TRUE, reason, message)
    if judged is not None and broken:
        message = f"RoutingPlan {name} no longer fits: {_first(judged)}; {_kept(shelf)}; {_another(shelf)}"
        return _stay(shelf, ConditionReason.STALE_PLAN, message, stalled=True)
    message = f"spec.acceptedPlan names RoutingPlan {name}"
    return Choice(digest, Standing.ACCEPTED, True, ConditionStatus.TRUE, ConditionReason.DIGEST_ACCEPTED, message)


def _without_approval(shelf: Shelf, returning: Return | None) -> Choice:
    if returning is not None and returning.state is not ReturnState.WATCHED:
        return _stay(shelf, ConditionReason.WORSE_THAN_FORECAST, returning.message, stalled=True)
    return _stay(shelf, ConditionReason.AWAITING_APPROVAL, _proposal(shelf, "planPolicy.mode is Approve"))


def _by_policy(shelf: Shelf, judged: Mapping[str, Judged], returning: Return | None) -> Choice:
    if returning is not None and returning.state is ReturnState.DUE and returning.digest is not None:
        return Choice(
            returning.digest, Standing.RETURNING, False, ConditionStatus.TRUE, ConditionReason.ROLLED_BACK,
            returning.message,
        )  # fmt: skip
    if returning is not None and returning.state is ReturnState.HELD:
        return _stay(shelf, ConditionReason.ROLLED_BACK, returning.message, stalled=True)
    candidate = judged.get(shelf.candidate or "")
    if candidate is None or not candidate.holds or candidate.digest == shelf.current:
        message = f"the policy is Auto; {_kept(shelf)}"
        return _stay(shelf, ConditionReason.POLICY_ACCEPTED, message, _status(shelf))
    message = f"the policy is Auto and picked RoutingPlan {shelf.name_of(candidate.digest)}"
    return Choice(
        candidate.digest, Standing.PROPOSED, False, ConditionStatus.TRUE, ConditionReason.POLICY_ACCEPTED, message
    )


def _stay(
    shelf: Shelf,
    reason: ConditionReason,
    message: str,
    status: ConditionStatus = ConditionStatus.FALSE,
    *,
    stalled: bool = False,
) -> Choice:
    """The plan in force stays, whatever it is."""
    standing = None if shelf.current is None else Standing.IN_FORCE
    accepted = shelf.current is not None and shelf.current == shelf.accepted
    return Choice(shelf.current, standing, accepted, status, reason, message, stalled)


def _proposal(shelf: Shelf, why: str) -> str:
    if shelf.candidate is None:
        return f"{why}; {_kept(shelf)}; no other plan is proposed"
    accept = f"to apply it, write spec.acceptedPlan.digest {shelf.candidate}"
    return f"{why}; RoutingPlan {shelf.name_of(shelf.candidate)} is proposed; {accept} (kvplan approve does)"


def _kept(shelf: Shelf) -> str:
    return f"RoutingPlan {shelf.name_of(shelf.current)} stays in force" if shelf.current else "no plan is in force"


def _another(shelf: Shelf) -> str:
    return f"accept another, such as {shelf.candidate}" if shelf.candidate else "accept another plan"


def _first(judged: Judged) -> str:
    more = f" and {len(judged.problems) - 1} more" if len(judged.problems) > 1 else ""
    return f"{judged.problems[0]}{more}"


def _status(shelf: Shelf) -> ConditionStatus:
    return ConditionStatus.FALSE if shelf.current is None else ConditionStatus.TRUE
