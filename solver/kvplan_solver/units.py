"""Conversions between the integers of the API and the floats of the equations.

The API speaks integers with the unit in the name (``…Milli``, ``…Milliseconds``, ``…Microseconds``);
the equations speak SI seconds, tokens and requests per second. Nothing else converts.
"""

MILLI = 1_000
MICRO = 1_000_000


def from_milli(value: int) -> float:
    """Thousandths to units."""
    return value / MILLI


def to_milli(value: float) -> int:
    """Units to thousandths, rounded half to even."""
    return round(value * MILLI)


def from_micro(value: int) -> float:
    """Millionths to units (microseconds to seconds)."""
    return value / MICRO


def to_micro(value: float) -> int:
    """Units to millionths (seconds to microseconds), rounded half to even."""
    return round(value * MICRO)
