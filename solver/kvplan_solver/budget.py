"""R̃ and Q: what one request takes from a group, and what a group has to give. Standard library only.

One function each for the solver, the certificate, the table and the router's ledger, so that they can
never disagree by a block. Source: 02-solver §1 (from equation (6e) of the BCD-DRO paper): a request of
class i on configuration k holds R̃_ik = ceil(r_i/B)·B − δ_ik·floor(Lpre_i/B)·B tokens, and the requests in
flight on a group may hold Q_k = M_k − Σ_i δ_ik·floor(Lpre_i/B)·B in all.

The headroom κ of (6e) is no part of Q. It is room for concurrency to fluctuate around the mean that a plan holds to
M_k; a ledger that kept it free as well would be full at the planned mean (docs/decisions/0008).
"""

from collections.abc import Iterable

from kvplan_solver.errors import InvalidInput


def ceil_to_block(tokens: float, block_tokens: int) -> int:
    """Smallest multiple of the KV block not below ``tokens``."""
    return -int(-tokens // block_tokens) * block_tokens


def floor_to_block(tokens: float, block_tokens: int) -> int:
    """Largest multiple of the KV block not above ``tokens``; the engine shares whole blocks only."""
    return int(tokens // block_tokens) * block_tokens


def effective_reservation_tokens(
    reservation_tokens: float, shared_prefix_tokens: int, cached: bool, block_tokens: int
) -> int:
    """R̃: KV tokens one request takes from the ledger of a group, in whole blocks."""
    held = ceil_to_block(reservation_tokens, block_tokens)
    return held - (floor_to_block(shared_prefix_tokens, block_tokens) if cached else 0)


def group_budget_tokens(kv_capacity_tokens: int, cached_prefix_tokens: Iterable[int], block_tokens: int) -> int:
    """Q: KV tokens that requests in flight on one group may hold together.

    Args:
        kv_capacity_tokens: M, KV tokens of the group.
        cached_prefix_tokens: Lpre of every class whose prefix is cached on the group.
        block_tokens: tokens of one KV block.

    Returns:
        Tokens, never negative.

    Raises:
        InvalidInput: a block smaller than one token.
    """
    if block_tokens < 1:
        raise InvalidInput("budget", "block_tokens", block_tokens, "use 1 or more tokens")
    return max(0, kv_capacity_tokens - sum(floor_to_block(tokens, block_tokens) for tokens in cached_prefix_tokens))
