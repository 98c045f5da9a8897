"""Names and block ids as integers: the same text always gets the same code, in order of first sight.

Inputs: raw values of the class, key and block columns. Output: int64 codes. Block ids that are
non-negative int64 stay as they are; others (hex digests, unsigned 64-bit hashes) get negative codes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan_cli.traces.errors import BadValueError

_INT64 = 1 << 63


@dataclass
class NameCodes:
    """Codes 0, 1, … for names; −1 for an absent one."""

    codes: dict[str, int] = field(default_factory=dict)

    def encode(self, values: Sequence[object]) -> list[int]:
        """The code of every value."""
        return [
            -1 if value is None or value == "" else self.codes.setdefault(str(value), len(self.codes))
            for value in values
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The names by code."""
        return tuple(self.codes)


@dataclass
class BlockCodes:
    """Codes of prompt block ids."""

    codes: dict[str, int] = field(default_factory=dict)

    def encode(self, value: object) -> list[int]:
        """The ids of one request; none for an absent value.

        Raises:
            BadValueError: the value is no list of whole numbers or texts.
        """
        blocks = _as_list(value)
        if set(map(type, blocks)) == {int} and min(blocks) >= 0 and max(blocks) < _INT64:
            return blocks
        return [self._code(block) for block in blocks]

    def _code(self, block: object) -> int:
        if isinstance(block, str) and block.isascii() and block.isdigit() and len(block) < 19:
            return int(block)
        if isinstance(block, bool) or not isinstance(block, str | int) or block == "":
            raise BadValueError("blocks are no list of ids")
        if isinstance(block, int) and 0 <= block < _INT64:
            return block
        return self.codes.setdefault(f"{block:x}" if isinstance(block, int) else block, -1 - len(self.codes))


def _as_list(value: object) -> list[Any]:
    """A list as it is; text as a JSON list or as ids separated by spaces, semicolons or bars."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise BadValueError("blocks are no list of ids")
    if not value.lstrip().startswith("["):
        return value.replace(";", " ").replace("|", " ").split()
    try:
        return list(json.loads(value))
    except (ValueError, RecursionError):
        raise BadValueError("blocks are no list of ids") from None
