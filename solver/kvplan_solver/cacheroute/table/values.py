"""What the encoder takes and the decoder gives: keys, where they live, and the look-up."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

KEY_BITS = 64
"""Bits of a key's hash as routers compute it."""

COLUMN_BYTES = 8, 4
"""Bytes of one entry of a table's two columns."""

NO_BACKUP = -1

SLOT_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?-[0-9]+"
"""Names of slots: a configuration and a number."""
SLOT_LONGEST = 253
"""Characters of a slot's name at most."""


class Home(NamedTuple):
    """Where a key lives: its destinations (slots, ascending) and the planned backup of a single replica."""

    destinations: tuple[str, ...]
    backup: str | None

    @property
    def fault(self) -> str:
        """The rule that this home breaks; empty where it breaks none. The names themselves are not looked at."""
        if not self.destinations:
            return "a home needs a destination"
        if any(a >= b for a, b in pairwise(self.destinations)):
            return "destinations must be ascending, each once"
        return "a backup must not be a destination" if self.backup in self.destinations else ""

    @property
    def order(self) -> tuple[tuple[str, ...], str]:
        """Where it stands among other homes."""
        return self.destinations, self.backup or ""


@dataclass(frozen=True, eq=False)
class TableKeys:
    """The admitted keys, column by column; row order carries no meaning.

    Attributes:
        homes: the distinct homes.
        hashes: 64-bit key hashes.
        rates: requests per second, same length; only their order matters (collisions, top keys).
        home_of: index into ``homes``, same length.
    """

    homes: tuple[Home, ...]
    hashes: Sequence[int]
    rates: Sequence[float]
    home_of: Sequence[int]


class Table:
    """An immutable look-up from key hash to home: two columns of machine integers, 12 bytes a key.

    Attributes:
        epoch: creation time of the index object, seconds.
        generation: counts the tables of one epoch.
        checksum: of the index this table came from.
        homes: the distinct homes.
    """

    __slots__ = ("_hashes", "_home_of", "_shift", "checksum", "epoch", "generation", "homes")

    def __init__(
        self,
        order: tuple[int, int],
        checksum: str,
        hash_bits: int,
        homes: Sequence[Home],
        columns: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        self.epoch, self.generation = order
        self.checksum = checksum
        self.homes = tuple(homes)
        self._shift = KEY_BITS - hash_bits
        self._hashes, self._home_of = columns

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def order(self) -> tuple[int, int]:
        """(epoch, generation); a later pair wins."""
        return self.epoch, self.generation

    @property
    def nbytes(self) -> int:
        """Bytes of the two columns."""
        return sum(width * len(column) for width, column in zip(COLUMN_BYTES, self.columns, strict=True))

    @property
    def columns(self) -> tuple[Sequence[int], Sequence[int]]:
        """The stored hashes, ascending, and the number of each one's home."""
        return self._hashes, self._home_of

    def lookup(self, key: int) -> Home | None:
        """The home of a 64-bit key hash, or None for the cold tail."""
        stored = key >> self._shift
        at = bisect_left(self._hashes, stored)
        if at == len(self._hashes) or self._hashes[at] != stored:
            return None
        return self.homes[self._home_of[at]]
