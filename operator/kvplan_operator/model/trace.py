"""The requests of one class as arrays: what every trace reader delivers and every estimate starts from.

Inputs: columns a reader has already parsed and checked row by row. Output: one frozen ``RequestTrace``,
sorted by arrival. It does no I/O and drops nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.errors import Finding, InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PrefixBlocks:
    """Ids of the leading prompt blocks of every request, ragged.

    Attributes:
        offsets: shape (n+1,); request i has ``ids[offsets[i]:offsets[i+1]]``.
        ids: block ids in prompt order, shape (total,).
        block_tokens: tokens of one block.
    """

    offsets: Ints
    ids: Ints
    block_tokens: int

    @property
    def lengths(self) -> Ints:
        """Blocks per request, shape (n,)."""
        return np.diff(self.offsets)

    def at_depth(self, rows: Ints, depth: int) -> Ints:
        """The ids at one depth, shape (len(rows),); every row must have more than ``depth`` blocks."""
        return np.asarray(self.ids[self.offsets[rows] + depth])

    def take(self, rows: Ints) -> "PrefixBlocks":
        """The blocks of some requests, in the order given."""
        lengths = self.lengths[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return PrefixBlocks(offsets, self.ids[np.repeat(self.offsets[rows], lengths) + within], self.block_tokens)


@dataclass(frozen=True, eq=False)
class RequestTrace:
    """n ≥ 1 requests of one class, ascending in arrival time where times are known.

    Attributes:
        name: the class.
        arrival_seconds: shape (n,), or None when the source has no times (its order then means nothing).
        prompt_tokens: shape (n,), or None.
        output_tokens: shape (n,).
        keys: index into ``key_names`` per request, −1 for none, shape (n,), or None.
        key_names: the distinct key values.
        key_blocks: leading blocks that the key stands for; 0 when it was named by the source.
        blocks: leading prompt blocks, or None.
    """

    name: str
    output_tokens: Floats
    arrival_seconds: Floats | None = None
    prompt_tokens: Floats | None = None
    keys: Ints | None = None
    key_names: tuple[str, ...] = ()
    key_blocks: int = 0
    blocks: PrefixBlocks | None = None

    def __post_init__(self) -> None:
        if not len(self.output_tokens):
            raise InvalidInput(f"class {self.name}", "output_tokens", Finding("holds no request"), "give at least one")
        for field in ("arrival_seconds", "prompt_tokens", "output_tokens"):
            self._check_numbers(field)
        if self.arrival_seconds is not None and (np.diff(self.arrival_seconds) < 0).any():
            raise InvalidInput(
                f"class {self.name}", "arrival_seconds", Finding("is out of order"), "sort the requests by arrival"
            )

    def _check_numbers(self, field: str) -> None:
        values = getattr(self, field)
        if values is None:
            return
        if len(values) != len(self.output_tokens):
            raise InvalidInput(f"class {self.name}", field, len(values), "give one value per request")
        if not np.isfinite(values).all() or (field != "arrival_seconds" and (values < 0).any()):
            raise InvalidInput(
                f"class {self.name}", field, Finding("is NaN, infinite or negative"), "remove those rows"
            )

    @property
    def count(self) -> int:
        """n, requests."""
        return len(self.output_tokens)
