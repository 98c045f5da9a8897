"""Generated requests of a stated distribution, for the sample where no real trace is at hand.

Input: a ``GeneratedClass`` and a seed. Output: a ``RequestTrace``; the same seed gives the same requests.
Lengths are lognormal, cut to [1, maximum]. Gaps between arrivals are gamma with the stated Ca², a renewal
process. Popularity of keys is lognormal with σ = 1.65 (the key-rate fit of 03-cacheroute §6).
"""

from dataclasses import dataclass

import numpy as np

from kvplan_operator.model.trace import Floats, PrefixBlocks, RequestTrace

KEY_SIGMA = 1.65
BLOCK_TOKENS = 128


@dataclass(frozen=True)
class Lognormal:
    """A length: exp of a normal, rounded and cut to [1, maximum] tokens."""

    mu: float
    sigma: float
    maximum: int

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """``count`` lengths in whole tokens."""
        return np.clip(np.round(rng.lognormal(self.mu, self.sigma, count)), 1, self.maximum)

    def described(self) -> str:
        """The parameters as text."""
        return f"lognormal(μ={self.mu:g}, σ={self.sigma:g}) up to {self.maximum}"


@dataclass(frozen=True)
class GeneratedClass:
    """One class of the generated sample.

    Attributes:
        name: the class.
        requests: how many to draw.
        requests_per_second: mean rate.
        arrival_scv: Ca² of the gaps; 1 is Poisson.
        prompt: prompt tokens.
        output: output tokens.
        keys: number of keys, 0 for none.
        shared_blocks: blocks that all prompts begin with.
        key_blocks: further blocks that all prompts of a key share.
    """

    name: str
    requests: int
    requests_per_second: float
    arrival_scv: float
    prompt: Lognormal
    output: Lognormal
    keys: int = 0
    shared_blocks: int = 0
    key_blocks: int = 0

    def described(self) -> str:
        """The stated distribution as a sentence."""
        keys = f", {self.keys} keys of lognormal popularity (σ={KEY_SIGMA})" if self.keys else ""
        return (
            f"{self.requests} requests at {self.requests_per_second:g}/s, Ca² {self.arrival_scv:g}, "
            f"prompt {self.prompt.described()}, output {self.output.described()} tokens{keys}"
        )


GENERATED = (
    GeneratedClass(
        "chat", 12_000, 5.9, 1.0, Lognormal(6.7, 0.98, 14_000), Lognormal(4.96, 0.88, 1_000),
        keys=2_000, shared_blocks=1, key_blocks=6,
    ),
    GeneratedClass("code", 6_600, 3.2, 60.0, Lognormal(6.99, 1.36, 7_400), Lognormal(2.78, 0.84, 1_900)),
    GeneratedClass("summarise", 20_000, 1.0, 1.0, Lognormal(7.72, 0.75, 4_000), Lognormal(5.18, 0.79, 4_000)),
)  # fmt: skip
"""The sample: moments of the logarithms as in the real traces of the same three uses."""


def generated_trace(made: GeneratedClass, seed: int) -> RequestTrace:
    """The requests of one class.

    Args:
        made: the stated distribution.
        seed: every class draws from a stream of its own, so adding one does not change the others.
    """
    rng = np.random.default_rng([seed, *made.name.encode()])
    shape = 1 / made.arrival_scv
    gaps = rng.gamma(shape, 1 / (shape * made.requests_per_second), made.requests)
    prompts = made.prompt.draw(rng, made.requests)
    return RequestTrace(
        name=made.name,
        arrival_seconds=np.cumsum(gaps),
        prompt_tokens=prompts,
        output_tokens=made.output.draw(rng, made.requests),
        blocks=_blocks(made, prompts, rng) if made.keys else None,
    )


def _blocks(made: GeneratedClass, prompts: Floats, rng: np.random.Generator) -> PrefixBlocks:
    """The class's blocks, then those of the request's key, as many as fill the prompt."""
    popularity = rng.lognormal(0.0, KEY_SIGMA, made.keys)
    keys = rng.choice(made.keys, size=made.requests, p=popularity / popularity.sum())
    own = made.shared_blocks + keys[:, None] * made.key_blocks + np.arange(made.key_blocks)
    common = np.tile(np.arange(made.shared_blocks), (made.requests, 1))
    ids = np.concatenate((common, own), axis=1)
    lengths = np.minimum(prompts // BLOCK_TOKENS, ids.shape[1]).astype(np.int64)
    filled = np.arange(ids.shape[1]) < lengths[:, None]
    return PrefixBlocks(np.concatenate(([0], np.cumsum(lengths))), ids[filled], BLOCK_TOKENS)
