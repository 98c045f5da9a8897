"""Admission: lets through the share of a class that the plan admits, evenly spread. Pure state.

In: one call per arrival. Out: whether it is admitted. Deterministic: each arrival earns ``admit_milli`` and an
admitted one costs 1000, so any n arrivals in a row admit n·a ± 1. Source: a_i of 02-solver §1.
"""

WHOLE_MILLI = 1000


class Thinning:
    """The running credit of one class; kept over table swaps."""

    __slots__ = ("_credit",)

    def __init__(self) -> None:
        self._credit = 0

    def admits(self, admit_milli: int) -> bool:
        """Whether the next arrival is admitted, at a share in thousandths."""
        if admit_milli >= WHOLE_MILLI:
            return True
        self._credit += admit_milli
        if self._credit < WHOLE_MILLI:
            return False
        self._credit -= WHOLE_MILLI
        return True
