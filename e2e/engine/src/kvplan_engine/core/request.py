"""One request as the scheduler sees it: tokens made, tokens computed, blocks held.

Inputs: prompt tokens and how many tokens the answer will have. A token is an unsigned 32-bit number. Pure.
"""

import enum
import hashlib
from array import array
from dataclasses import dataclass, field

from kvplan_engine.core.text import answer_seed, answer_token


class FinishReason(enum.StrEnum):
    """Why a request ended; the label values of ``vllm:request_success_total``."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"
    REPETITION = "repetition"


@dataclass(eq=False, slots=True)
class Request:
    """A request and its progress.

    Attributes:
        request_id: the engine's own identity of the request.
        prompt: prompt tokens, at least one.
        output_tokens: tokens the answer will have, at least 1.
        finish_reason: reason given once they are all made.
        max_tokens: cap on the answer that the client asked for, tokens.
        arrival: order of arrival (or a time in seconds); only compared.
        priority: lower is served earlier; matters under the priority policy alone.
        cache_salt: requests share cached blocks only where this is equal.
        reservation_tokens: prompt plus output tokens to keep room for; None reserves nothing.
        tokens: prompt and answer so far.
        computed: tokens whose KV is in the blocks.
        blocks: blocks held, in order.
        published: how many of those, from the first, the prefix cache knows.
        cached_tokens: prompt tokens found in the prefix cache at the first admission.
        preemptions: times this request lost its blocks.
    """

    request_id: str
    prompt: "array[int]"
    output_tokens: int
    finish_reason: FinishReason = FinishReason.LENGTH
    max_tokens: int = 0
    arrival: float = 0.0
    priority: int = 0
    cache_salt: str = ""
    reservation_tokens: int | None = None
    tokens: "array[int]" = field(init=False)
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    published: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    _answer_seed: int = field(init=False)
    _hashes: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = self.prompt[:]
        self._answer_seed = answer_seed(self.prompt)

    def answer_on(self) -> None:
        """Add the next token of the answer."""
        self.tokens.append(answer_token(self._answer_seed, self.generated))

    @property
    def generated(self) -> int:
        """Answer tokens so far."""
        return len(self.tokens) - len(self.prompt)

    @property
    def finished(self) -> bool:
        """Whether the answer is complete."""
        return self.generated >= self.output_tokens

    @property
    def urgency(self) -> tuple[int, float]:
        """Sort key of the priority policy: the largest is preempted first."""
        return self.priority, self.arrival

    def release_blocks(self) -> list[int]:
        """Give up all blocks, and with them everything computed."""
        blocks, self.blocks, self.published, self.computed = self.blocks, [], 0, 0
        return blocks

    def block_hashes(self, block_tokens: int, first: int, last: int) -> list[bytes]:
        """Hashes of full blocks ``first`` to ``last`` (excluded); each covers all tokens before it, and the salt."""
        while len(self._hashes) < last:
            start = len(self._hashes) * block_tokens
            parent = self._hashes[-1] if self._hashes else self.cache_salt.encode()
            content = self.tokens[start : start + block_tokens].tobytes()
            self._hashes.append(hashlib.blake2b(content, digest_size=16, key=_key(parent)).digest())
        return self._hashes[first:last]


def _key(parent: bytes) -> bytes:
    """A hash key of legal length: salts may be long."""
    return hashlib.blake2b(parent, digest_size=16).digest()
