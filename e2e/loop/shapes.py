"""How requests of a class look: prompt and output lengths, keys, and how many are streamed.

Inputs: lengths in tokens. Outputs: ``Asked``. Prompts of one key begin alike, so that a cache can hold what they share;
the rest of each is its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from e2e.loop.asking import TOKEN_BYTES, Asked


@dataclass(frozen=True)
class Shape:
    """One class.

    Attributes:
        name: of the class.
        lengths: (prompt, output) tokens, each pair as likely as any other.
        keys: how many there are; 0 for none.
        key_skew: Zipf exponent of their popularity.
        shared_tokens: of the prompt that requests of one key have in common.
        streamed: share of requests whose answer comes in pieces.
    """

    name: str
    lengths: Sequence[tuple[int, int]]
    keys: int = 0
    key_skew: float = 1.0
    shared_tokens: int = 0
    streamed: float = 0.5

    def draw(self, rng: Random) -> Asked:
        """One request."""
        prompt, output = rng.choice(self.lengths)
        key = f"{self.name}-{self._key(rng)}" if self.keys else ""
        return Asked(self.name, self._prompt(prompt, key, rng), output, key, rng.random() < self.streamed)

    def _key(self, rng: Random) -> int:
        weights = [1.0 / (rank + 1) ** self.key_skew for rank in range(self.keys)]
        return rng.choices(range(self.keys), weights)[0]

    def _prompt(self, tokens: int, key: str, rng: Random) -> str:
        shared = min(self.shared_tokens, tokens)
        return _words(Random(key), shared) + _words(rng, tokens - shared)  # noqa: S311 - text, no secret


def _words(rng: Random, tokens: int) -> str:
    return f"{rng.getrandbits(4 * TOKEN_BYTES * tokens):0{TOKEN_BYTES * tokens}x}" if tokens else ""
