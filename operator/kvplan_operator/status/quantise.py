"""Numbers coarse enough to stand still: 3 significant digits, and moved only by more than 10 %. Pure."""

DIGITS = 3
BAND = 0.1
"""Relative distance, of the larger number, up to which the stored number stays."""


def quantise(value: int) -> int:
    """The value with 3 significant digits, halves to even."""
    return round(value, DIGITS - len(str(abs(value)))) if abs(value) >= 10**DIGITS else value


def settle(stored: int, fresh: int) -> int:
    """The stored number while the fresh one is near it, else the fresh one, quantised.

    Near is within 10 % of the larger number, and one unit: rounding a small number to an integer is no move. Down to
    zero every move counts, because no traffic is not little traffic.
    """
    near = abs(stored - fresh) <= BAND * max(abs(stored), abs(fresh)) + 1
    return stored if stored == fresh or (near and fresh) else quantise(fresh)
