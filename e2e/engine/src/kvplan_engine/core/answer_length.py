"""How long an answer gets: to its cap when told to ignore the end, else a draw that the request fixes.

L = lognormal(ln median, sigma), at least 1 token; the same seed gives the same length in every process. Pure.
"""

import math
import random
from dataclasses import dataclass

from kvplan_engine.core.request import FinishReason


@dataclass(frozen=True)
class AnswerLength:
    """The length distribution of answers that end by themselves.

    Attributes:
        median_tokens: median.
        sigma: standard deviation of the logarithm.
    """

    median_tokens: float
    sigma: float

    def plan(self, seed: str, max_tokens: int, *, ignore_eos: bool) -> tuple[int, FinishReason]:
        """Tokens of an answer, and why it ends there."""
        if ignore_eos:
            return max_tokens, FinishReason.LENGTH
        exponent = random.Random(seed).gauss(math.log(self.median_tokens), self.sigma)  # noqa: S311  (no secret)
        length = max(1, round(math.exp(min(exponent, 40.0))))
        return (length, FinishReason.STOP) if length < max_tokens else (max_tokens, FinishReason.LENGTH)
