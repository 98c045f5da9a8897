"""Pauses between tries: they double up to a limit, each drawn evenly from zero (full jitter).

Inputs: how often it failed, and randomness. Output: seconds. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """How pauses grow.

    Attributes:
        first_seconds: bound of the first pause.
        most_seconds: bound of every pause.
    """

    first_seconds: float
    most_seconds: float

    def seconds(self, failures: int, rng: Callable[[], float]) -> float:
        """The pause after so many failures in a row, counted from 1; ``rng`` draws from [0, 1)."""
        doublings = min(failures - 1, 32)
        return rng() * min(self.most_seconds, self.first_seconds * 2.0**doublings)
