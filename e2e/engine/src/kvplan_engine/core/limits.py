"""What bounds a step of the engine. Pure."""

import enum
from dataclasses import dataclass


class Policy(enum.StrEnum):
    """Values of ``--scheduling-policy``."""

    FCFS = "fcfs"
    PRIORITY = "priority"


@dataclass(frozen=True)
class Limits:
    """What bounds a step.

    Attributes:
        blocks: blocks in the pool, the null block included.
        block_tokens: tokens per block.
        max_running: requests running at once.
        max_batched_tokens: tokens computed in one step.
        max_model_len: prompt plus answer of one request, tokens.
        long_prefill_tokens: prompt tokens of one request computed in one step; 0 sets no limit.
        watermark: share of the blocks kept free when admitting while something runs, 0 to 1.
        prefix_caching: whether released blocks can be found again.
        chunked_prefill: whether a prompt may be computed over several steps.
        whole_prompt: whether admission needs blocks for the whole prompt.
        reservations: whether requests' reservations bind (the plugin is loaded).
        policy: order of the waiting queue and choice of the victim.
    """

    blocks: int
    block_tokens: int
    max_running: int
    max_batched_tokens: int
    max_model_len: int
    long_prefill_tokens: int = 0
    watermark: float = 0.0
    prefix_caching: bool = True
    chunked_prefill: bool = True
    whole_prompt: bool = True
    reservations: bool = False
    policy: Policy = Policy.FCFS
