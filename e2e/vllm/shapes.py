"""Requests to the tiny model.

Inputs: lengths in words of four letters. Outputs: ``Asked``. To the tokenizer every hexadecimal digit is a token,
so a word is four tokens; what a model with random weights answers is no text whose length tells anything.
"""

from dataclasses import dataclass, replace
from random import Random

from e2e.loop.asking import Asked
from e2e.loop.shapes import Shape


@dataclass(frozen=True)
class TinyShape(Shape):
    """One class of requests; prompt lengths in words of four tokens, output lengths in tokens."""

    def draw(self, rng: Random) -> Asked:
        """One request."""
        return replace(super().draw(rng), text_tells=False)
