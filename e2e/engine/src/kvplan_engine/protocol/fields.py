"""Fields of a JSON object, by type; null is the same as absent. Pure; the wrong type raises BadRequest."""

from typing import Any

from kvplan_engine.protocol.errors import BadRequest

_BIGGEST = 2**63


def boolean(fields: dict[str, Any], name: str) -> bool:
    """A boolean; absent is false."""
    value = fields.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise BadRequest(f"{name} must be a boolean.", name)


def integer(fields: dict[str, Any], name: str) -> int | None:
    """An integer of at most 64 bits."""
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is int and -_BIGGEST <= value < _BIGGEST:
        return value
    raise BadRequest(f"{name} must be an integer of at most 64 bits.", name)


def text(fields: dict[str, Any], name: str) -> str | None:
    """A text."""
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return value
    raise BadRequest(f"{name} must be a string.", name)
