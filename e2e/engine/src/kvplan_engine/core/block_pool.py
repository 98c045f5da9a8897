"""The KV blocks of one engine, and the prefix cache that lives in its free ones.

Inputs: how many blocks there are. Outputs: block numbers. A released block keeps its content until it is
needed for something else, least recently released first; until then a request with the same tokens may take
it back. Block 0 is vLLM's null block and is never handed out. Pure.
"""

from collections.abc import Iterable, Sequence

NULL_BLOCK = 0


class BlockPool:
    """Blocks, who holds them, and which content can be found again.

    Args:
        blocks: blocks in the pool, the null block included.
        caching: whether released blocks can be found again.
    """

    def __init__(self, blocks: int, *, caching: bool) -> None:
        self.blocks = blocks
        self._caching = caching
        self._pristine = NULL_BLOCK + 1  # blocks from here on were never used: no list of millions at start
        self._released: dict[int, None] = {}  # in order of release
        self._holders: dict[int, int] = {}
        self._block_of: dict[bytes, int] = {}
        self._hash_of: dict[int, bytes] = {}

    @property
    def usable(self) -> int:
        """Blocks that requests can hold: all but the null block."""
        return self.blocks - 1

    @property
    def free(self) -> int:
        """Blocks that no request holds."""
        return self.blocks - self._pristine + len(self._released)

    @property
    def usage(self) -> float:
        """Share of the usable blocks that requests hold, 0 to 1."""
        return 1 - self.free / self.usable if self.usable else 0.0

    def find(self, hashes: Iterable[bytes]) -> list[int]:
        """Blocks holding the longest known head of ``hashes``."""
        found = []
        for content in hashes:
            block = self._block_of.get(content)
            if block is None:
                break
            found.append(block)
        return found

    def free_among(self, blocks: Iterable[int]) -> int:
        """How many of ``blocks`` nobody holds: taking those shrinks ``free``."""
        return sum(1 for block in blocks if block in self._released)

    def share(self, blocks: Iterable[int]) -> None:
        """Hold blocks that ``find`` returned, with whoever holds them already."""
        for block in blocks:
            self._released.pop(block, None)
            self._holders[block] = self._holders.get(block, 0) + 1

    def take(self, count: int) -> list[int]:
        """Hold ``count`` blocks of no content; there must be that many free ones."""
        return [self._take_one() for _ in range(count)]

    def _take_one(self) -> int:
        if self._pristine < self.blocks:
            block, self._pristine = self._pristine, self._pristine + 1
        else:
            block = next(iter(self._released))
            del self._released[block]
            self._forget(block)
        self._holders[block] = 1
        return block

    def _forget(self, block: int) -> None:
        content = self._hash_of.pop(block, None)
        if content is not None and self._block_of.get(content) == block:
            del self._block_of[content]

    def publish(self, blocks: Sequence[int], hashes: Sequence[bytes]) -> None:
        """Say what full blocks hold, so that ``find`` sees them."""
        if not self._caching:
            return
        for block, content in zip(blocks, hashes, strict=True):
            if block not in self._hash_of:
                self._hash_of[block] = content
                self._block_of[content] = block

    def release(self, blocks: Sequence[int]) -> None:
        """Let go of a request's blocks; its last block is the first to be reused."""
        for block in reversed(blocks):
            self._holders[block] -= 1
            if not self._holders[block]:
                del self._holders[block]
                self._released[block] = None
