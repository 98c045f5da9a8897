"""The two conditions of routing, as values: TableFresh and AffinityEnabled.

Inputs: what a round of routing decided. Outputs: ``ConditionValue``. Messages hold no number that moves at rest, so
that a stored condition changes only when there is something to say. Pure.
"""

from typing import NamedTuple

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.route.acknowledge import Acknowledgement
from kvplan_operator.route.affinity import AffinityDecision
from kvplan_operator.route.keys import KeyDecision
from kvplan_solver.cacheroute.key_plan import Outcome

WEAK = (
    "Routers hash keys under the fleet's uid, which is no secret: mount the hash secret of the installation into them."
)
NO_RATES = "No valid rate of any key is known, so the last table stays: check that Prometheus scrapes the routers."
OFF = "routing.mode is Off: no index is published, and routers answer without an override."
OBSERVING = "routing.mode is Observe: routers only measure."
NO_ROOM = (
    "The reservations leave no KV memory for reusable prefixes, or no key reuses one: lower objective.headroomMilli, "
    "add groups, or set routing.warmSlotsPerDestination."
)


class ConditionValue(NamedTuple):
    """A condition before it meets the stored one."""

    type: ConditionType
    status: ConditionStatus
    reason: ConditionReason
    message: str


def routing_off() -> tuple[ConditionValue, ...]:
    """Both conditions where nothing is published."""
    return tuple(
        ConditionValue(type_, ConditionStatus.FALSE, ConditionReason.SWITCHED_OFF, OFF)
        for type_ in (ConditionType.TABLE_FRESH, ConditionType.AFFINITY_ENABLED)
    )


def name_taken(message: str) -> tuple[ConditionValue, ...]:
    """Both conditions where the index cannot be written under its name."""
    return tuple(
        ConditionValue(type_, ConditionStatus.FALSE, ConditionReason.TABLE_NAME_TAKEN, message)
        for type_ in (ConditionType.TABLE_FRESH, ConditionType.AFFINITY_ENABLED)
    )


def table_fresh(known: Acknowledgement, keys: KeyDecision | None, weak_secret: bool) -> ConditionValue:
    """Whether the routers have the newest table, and it could be planned; without a live router nobody lacks it."""
    status, reason, message = ConditionStatus.TRUE, ConditionReason.TABLE_ACKNOWLEDGED, known.message
    if not known.everyone:
        status, reason = ConditionStatus.FALSE, ConditionReason.TABLE_PENDING
    elif keys is not None and keys.outcome is Outcome.RATES_UNAVAILABLE:
        status, reason, message = ConditionStatus.FALSE, ConditionReason.RATES_UNAVAILABLE, NO_RATES
    elif weak_secret:
        reason, message = ConditionReason.WEAK_KEY_SECRET, WEAK
    return ConditionValue(ConditionType.TABLE_FRESH, status, reason, message)


def affinity_enabled(affinity: AffinityDecision, keys: KeyDecision | None, *, observing: bool) -> ConditionValue:
    """Whether hot keys have a fixed home."""
    if observing:
        return _affinity(ConditionStatus.FALSE, ConditionReason.SWITCHED_OFF, OBSERVING)
    if affinity.on and keys is not None and keys.outcome is Outcome.NO_ROOM:
        return _affinity(ConditionStatus.FALSE, ConditionReason.NO_WARM_SLOTS, NO_ROOM)
    unknown = affinity.reason is ConditionReason.GAIN_UNKNOWN
    off = ConditionStatus.UNKNOWN if unknown else ConditionStatus.FALSE
    return _affinity(ConditionStatus.TRUE if affinity.on else off, affinity.reason, affinity.message)


def _affinity(status: ConditionStatus, reason: ConditionReason, message: str) -> ConditionValue:
    return ConditionValue(ConditionType.AFFINITY_ENABLED, status, reason, message)
