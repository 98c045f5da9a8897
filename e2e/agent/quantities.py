"""Kubernetes quantities such as `500m`, `2Gi` and `1e3` as exact numbers."""

import math
from fractions import Fraction

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse(text: str) -> Fraction:
    """Return the number that a quantity stands for.

    Raises:
        ValueError: when it is none.
    """
    for suffix, factor in _BINARY.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * factor
    if text[-1:] in _DECIMAL:
        return Fraction(text[:-1]) * Fraction(10) ** _DECIMAL[text[-1]]
    return Fraction(text)


def in_units(quantity: str, divisor: str) -> str:
    """Return a quantity in units of the divisor, rounded up as the downward API does."""
    return str(math.ceil(parse(quantity) / (parse(divisor) if divisor != "0" else 1)))
