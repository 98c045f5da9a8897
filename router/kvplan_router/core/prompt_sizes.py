"""How long a prompt is, told from the bytes of its request: learned from answers whose usage was seen. Pure state.

In: bytes and prompt tokens of sampled requests of one class. Out: tokens that a request of so many bytes hardly
exceeds. A router that asks for headers only knows a prompt by its Content-Length. Tokens per byte depend on language,
template and JSON; they are kept by octave of the size, because what surrounds a short prompt weighs more. The largest
of the last n is exceeded by the next with chance 1/(n+1), whatever their distribution. Must not: see any text.
Source: docs/decisions/0009.
"""

from collections import deque
from math import ceil
from typing import Final

REMEMBERED: Final = 64
"""Requests of each octave that are remembered: 1 in 65 is longer than told."""
ENOUGH: Final = 19
"""From so many on an estimate is given: 1 in 20 is longer, as with the plan's own 95 % quantile."""

FEWEST: Final = 1 / 16
"""Tokens per byte that are told at least: a client that pads its requests must not make those of others look empty."""


class PromptSizes:
    """Tokens per byte of one class; kept over table swaps."""

    __slots__ = ("_largest", "_seen")

    def __init__(self) -> None:
        self._seen: dict[int, deque[float]] = {}
        self._largest: dict[int, float] = {}

    def learn(self, size: int, prompt_tokens: int) -> bool:
        """A request of so many bytes had so many tokens; one of unknown size teaches nothing.

        Returns:
            Whether prompts of that octave are told to be longer or shorter from now on.
        """
        if size <= 0:
            return False
        octave = size.bit_length()
        seen = self._seen.setdefault(octave, deque(maxlen=REMEMBERED))
        seen.append(prompt_tokens / size)
        before = self._largest.get(octave)
        if len(seen) >= ENOUGH:
            self._largest[octave] = max(FEWEST, *seen)
        return self._largest.get(octave) != before

    def tokens(self, size: int) -> int | None:
        """Tokens that a prompt of so many bytes hardly exceeds; None where too little is known of such."""
        ratio = self._largest.get(size.bit_length())
        return None if ratio is None else ceil(ratio * size)
