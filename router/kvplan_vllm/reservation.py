"""A request's reservation, read off its id, and the blocks an engine must leave free for the requests it runs.

Inputs: request ids as vLLM carries them, block counts. Outputs: tokens and blocks. The router writes the reservation as
a suffix of ``x-request-id`` (``<id>-kvr<tokens>``), from which vLLM makes the id ``cmpl-<id>-kvr<tokens>-0-<hex>``. The
reservation is R̃, from which a cached prefix is already left out. Pure, standard library only.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SUFFIX = re.compile(r"-kvr(\d{1,9})(?!\d)")


def reservation_tokens(request_id: str) -> int:
    """R̃ of a request in tokens; 0 where the id carries none. The last suffix counts: the router's own."""
    found = _SUFFIX.findall(request_id)
    return int(found[-1]) if found else 0


@dataclass(frozen=True)
class Holding:
    """What one request has and what it was promised.

    Attributes:
        reserved_blocks: of its reservation.
        own_blocks: that it holds, a prefix found in the cache left out.
    """

    reserved_blocks: int
    own_blocks: int

    @property
    def outstanding_blocks(self) -> int:
        """Blocks it may still take of its reservation; none once it has outgrown it."""
        return max(0, self.reserved_blocks - self.own_blocks)


def blocks_to_leave(running: Iterable[Holding], newcomer: Holding) -> int:
    """Free blocks that must remain when the newcomer gets its first blocks, for everyone's reservation to hold.

    Args:
        running: requests that the engine runs.
        newcomer: with the blocks that it gets now as its own.
    """
    return sum(holding.outstanding_blocks for holding in running) + newcomer.outstanding_blocks


def to_blocks(tokens: int, block_tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return -(-tokens // block_tokens)
