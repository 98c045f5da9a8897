"""Ready, Reconciling and Stalled of a RoutingPlan, from its other conditions.

Input: what was said of it. Output: three conditions. A plan that waits or was replaced is as it should be; one in
force is once its groups run; one that cannot hold, or failed, waits for a person. Pure. Source: kstatus, 01-api.
"""

from collections.abc import Iterable

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.status.said import Said, flag, nothing_wrong

_READY, _RECONCILING, _STALLED = ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED


def plan_readiness(said: Iterable[Said]) -> tuple[Said, Said, Said]:
    """The three conditions of kstatus."""
    by_type = {one.type: one for one in said}
    proposed, failed = by_type[ConditionType.PROPOSED], by_type.get(ConditionType.FAILED)
    if failed is not None and failed.status is ConditionStatus.TRUE:
        return _stopped(failed)
    if proposed.status is ConditionStatus.FALSE:
        return _stopped(proposed)
    applied = by_type.get(ConditionType.APPLIED)
    if applied is not None and applied.reason is ConditionReason.ROLLING_OUT:
        moving = flag(_RECONCILING, True, applied.reason, applied.message)
        return flag(_READY, False, applied.reason, applied.message), moving, nothing_wrong(_STALLED)
    if proposed.status is ConditionStatus.UNKNOWN:
        unchecked = Said(_READY, ConditionStatus.UNKNOWN, proposed.reason, proposed.message)
        return unchecked, nothing_wrong(_RECONCILING), nothing_wrong(_STALLED)
    word = applied or by_type[ConditionType.ACCEPTED]
    return flag(_READY, True, word.reason, word.message), nothing_wrong(_RECONCILING), nothing_wrong(_STALLED)


def _stopped(why: Said) -> tuple[Said, Said, Said]:
    ready = flag(_READY, False, why.reason, why.message)
    return ready, nothing_wrong(_RECONCILING), flag(_STALLED, True, why.reason, why.message)
