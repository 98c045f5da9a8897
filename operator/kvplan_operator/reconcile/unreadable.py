"""A fleet that does not parse says so itself: its conditions are set, all else of its status stays as it is.

Inputs: the world, the writer, the clock. Output: a status, where it differs. Nothing else is done about such a fleet.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from kvplan_operator.api.common import Condition, ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType, with_condition
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.reflector import Key
from kvplan_operator.model.instants import timestamp
from kvplan_operator.model.pods import part, parts
from kvplan_operator.reconcile.services import Services


async def tell_unreadable(services: Services, key: Key) -> None:
    """Set the conditions of a fleet that is there and does not parse.

    Raises:
        KubeError: the status cannot be written.
    """
    found = services.world.unreadable(key)
    if found is not None:
        raw, fault = found
        await services.writer.raw_status(raw, unreadable_status(raw, fault, services.clock()))


def unreadable_status(raw: Object, fault: str, now: float) -> dict[str, Any]:
    """The stored status with Ready, Reconciling and Stalled as of now.

    Args:
        raw: the fleet as the API server has it.
        fault: why it does not parse, with object, field, value and remedy.
        now: seconds since the epoch.
    """
    stored = part(raw, "status")
    conditions: tuple[Condition, ...] = tuple(_readable(stored))
    wanted = (
        (ConditionType.READY, ConditionStatus.FALSE),
        (ConditionType.RECONCILING, ConditionStatus.FALSE),
        (ConditionType.STALLED, ConditionStatus.TRUE),
    )
    generation = int(part(raw, "metadata").get("generation", 0))
    for type_, status in wanted:
        conditions = with_condition(
            conditions, type_, status, ConditionReason.INPUTS_REFUSED, fault, generation=generation, now=timestamp(now)
        )
    return {**stored, "conditions": [condition.to_wire() for condition in conditions]}


def _readable(stored: Mapping[str, Any]) -> Iterator[Condition]:
    """Stored conditions; one that does not parse either is set anew or left out."""
    for item in parts(stored, "conditions"):
        try:
            yield Condition.model_validate(item)
        except ValidationError:
            continue
