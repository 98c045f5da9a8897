"""The steps of a change of plan, as the API server sees them: what the operator wrote, and what came of it.

Inputs: two versions of an object, the older first; None where there was or is none. Outputs: a kind of step, or None
where the difference is none. Nothing is taken from the operator's word. Pure.
"""

from enum import StrEnum
from typing import Any

from kvplan_operator.api.labels import DRAINING_ANNOTATION
from kvplan_operator.model.pods import is_ready, is_terminating


class Kind(StrEnum):
    """What happened."""

    FOLLOW = "follow"
    """The fleet's status names another plan in force."""
    TABLE = "table"
    """Another index is published."""
    DRAIN = "drain"
    """An engine is to get no new requests."""
    SHRINK = "shrink"
    GROW = "grow"
    CREATE = "create"
    DELETE = "delete"
    READY = "ready"
    """An engine became Ready."""
    GOING = "going"
    """An engine was told to end."""
    GONE = "gone"


BY_OPERATOR = frozenset({Kind.FOLLOW, Kind.TABLE, Kind.DRAIN, Kind.SHRINK, Kind.GROW, Kind.CREATE, Kind.DELETE})
"""Writes of the operator; the rest is what controllers and nodes make of them."""


def of_fleet(old: Any, new: Any) -> Kind | None:
    """A step told by a ServingFleet."""
    return Kind.FOLLOW if new and _in_force(old) != _in_force(new) else None


def of_table(old: Any, new: Any) -> Kind | None:
    """A step told by a ConfigMap of the table."""
    return Kind.TABLE if new and _index(old) != _index(new) else None


def of_deployment(old: Any, new: Any) -> Kind | None:
    """A step told by a Deployment of engines."""
    if old is None or new is None:
        return Kind.CREATE if old is None else Kind.DELETE
    before, after = int(old["spec"]["replicas"]), int(new["spec"]["replicas"])
    if before == after:
        return None
    return Kind.GROW if after > before else Kind.SHRINK


def of_engine(old: Any, new: Any) -> Kind | None:
    """A step told by an engine's pod."""
    if new is None:
        return Kind.GONE
    if is_terminating(new):
        return None if old and is_terminating(old) else Kind.GOING
    if _drains(new):
        return None if old and _drains(old) else Kind.DRAIN
    return Kind.READY if is_ready(new) and not (old and is_ready(old)) else None


def _in_force(fleet: Any) -> str:
    return str((fleet or {}).get("status", {}).get("currentPlan", {}).get("digest", ""))


def _index(config_map: Any) -> str:
    return str((config_map or {}).get("data", {}).get("index.json", ""))


def _drains(pod: Any) -> bool:
    return DRAINING_ANNOTATION in pod["metadata"].get("annotations", {})
