"""Chunks of raw rows to checked arrays: the one place where a row is accepted or refused.

Inputs: chunks of a ``Table`` and its ``ColumnMapping``. Output: arrays of all good rows in file order and
the count of bad ones. A row is refused whole, for its first problem, and always counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvplan_cli.traces.bad_rows import BadRowCounter
from kvplan_cli.traces.errors import BadValueError
from kvplan_cli.traces.identifiers import BlockCodes, NameCodes
from kvplan_cli.traces.mapping import UNIT_SECONDS, ColumnMapping
from kvplan_cli.traces.numbers import Reasons, arrival_times, token_counts
from kvplan_cli.traces.table import Chunk
from kvplan_operator.model.trace import Floats, Ints, PrefixBlocks

_NUMBERS = ("arrival", "prompt", "output")


@dataclass(frozen=True, eq=False)
class GoodRows:
    """The accepted rows of a file, in file order; a fact the file does not have is None.

    Attributes:
        numbers: ``arrival`` (seconds), ``prompt`` and ``output`` (tokens), each of shape (n,).
        classes: code of the class per row.
        keys: code of the key per row, −1 for none.
        blocks: leading prompt blocks.
    """

    numbers: dict[str, Floats]
    classes: Ints | None
    keys: Ints | None
    blocks: PrefixBlocks | None


@dataclass
class RowCollector:
    """Accepts chunks one after the other; ``collected`` joins them."""

    mapping: ColumnMapping
    bad: BadRowCounter = field(default_factory=BadRowCounter)
    class_codes: NameCodes = field(default_factory=NameCodes)
    key_codes: NameCodes = field(default_factory=NameCodes)
    rows: int = 0
    _block_codes: BlockCodes = field(default_factory=BlockCodes)
    _parts: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def add(self, chunk: Chunk) -> None:
        """Check one chunk and keep its good rows."""
        self.rows += len(chunk.lines) + len(chunk.broken)
        reasons: Reasons = {}
        parts = self._converted(chunk, reasons)
        self._count_bad(chunk, reasons)
        keep = np.ones(len(chunk.lines), dtype=bool)
        keep[list(reasons)] = False
        for name, values in parts.items():
            self._parts.setdefault(name, []).append(values[keep])
        if self.mapping.blocks:
            self._add_blocks(chunk.columns[self.mapping.blocks], keep)

    def collected(self) -> GoodRows:
        """All good rows of all chunks."""
        joined = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        return GoodRows(
            numbers={name: joined[name] for name in _NUMBERS if name in joined},
            classes=joined.get("class"),
            keys=joined.get("key"),
            blocks=self._joined_blocks(joined) if self.mapping.blocks else None,
        )

    def _converted(self, chunk: Chunk, reasons: Reasons) -> dict[str, np.ndarray]:
        """Every mapped column as an array; adds the first reason against each bad row."""
        parts: dict[str, np.ndarray] = {}
        mapping = self.mapping
        if mapping.arrival:
            unit = UNIT_SECONDS.get(mapping.arrival_unit)
            parts["arrival"], found = arrival_times(chunk.columns[mapping.arrival], unit)
            _merge(reasons, found, mapping.arrival)
        for name, column in (("prompt", mapping.prompt), ("output", mapping.output)):
            if column:
                parts[name], found = token_counts(chunk.columns[column])
                _merge(reasons, found, column)
        if mapping.class_column:
            parts["class"] = np.array(self.class_codes.encode(chunk.columns[mapping.class_column]), np.int64)
            empty = dict.fromkeys(np.flatnonzero(parts["class"] < 0).tolist(), ("empty", ""))
            _merge(reasons, empty, mapping.class_column)
        if mapping.key:
            parts["key"] = np.array(self.key_codes.encode(chunk.columns[mapping.key]), np.int64)
        if mapping.blocks:
            self._encode_blocks(chunk, reasons)
        return parts

    def _encode_blocks(self, chunk: Chunk, reasons: Reasons) -> None:
        """Replace the raw blocks of the chunk by lists of codes."""
        encoded: list[object] = []
        for place, value in enumerate(chunk.columns[self.mapping.blocks]):
            try:
                encoded.append(self._block_codes.encode(value))
            except BadValueError as error:
                encoded.append([])
                reasons.setdefault(place, (f"{self.mapping.blocks}: {error}", ""))
        chunk.columns[self.mapping.blocks] = encoded

    def _count_bad(self, chunk: Chunk, reasons: Reasons) -> None:
        refused = [(chunk.lines[place], *reason) for place, reason in reasons.items()]
        for line, kind, detail in sorted([*chunk.broken, *refused]):
            self.bad.add(line, kind, detail)

    def _add_blocks(self, encoded: Sequence[object], keep: np.ndarray) -> None:
        kept = [ids for ids, good in zip(encoded, keep.tolist(), strict=True) if good and isinstance(ids, list)]
        lengths = np.array([len(ids) for ids in kept], dtype=np.int64)
        flat = np.array([block for ids in kept for block in ids], dtype=np.int64)
        self._parts.setdefault("block lengths", []).append(lengths)
        self._parts.setdefault("block ids", []).append(flat)

    def _joined_blocks(self, joined: dict[str, np.ndarray]) -> PrefixBlocks:
        offsets = np.concatenate(([0], np.cumsum(joined["block lengths"])))
        return PrefixBlocks(offsets, joined["block ids"], self.mapping.block_tokens)


def _merge(reasons: Reasons, found: Reasons, column: str) -> None:
    for place, (kind, detail) in found.items():
        reasons.setdefault(place, (f"{column}: {kind}", detail))
