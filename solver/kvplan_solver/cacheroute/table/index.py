"""The index document, format 1: the one JSON text a router reads first. Standard library only.

In: a document (head from the operator, table part from the encoder) or the text of one. Out: the text with
its checksum, or a checked :class:`Index`. Fields and meaning: docs/contracts/index.md; 09-contracts "Index".
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan_solver.cacheroute.table.refused import RefusalReason, TableRefused
from kvplan_solver.cacheroute.table.shape import Dictionary, Listing, OneOf, Record, Text, Whole
from kvplan_solver.cacheroute.table.shard import SHARD_BYTES_MAX
from kvplan_solver.cacheroute.table.values import SLOT_LONGEST, SLOT_PATTERN
from kvplan_solver.errors import InvalidInput

FORMAT = 1
INDEX_BYTES_MAX = 1_048_576
"""Decoded bytes a ConfigMap may hold."""
INLINE_KEYS_MAX = 4_000
TOP_KEYS_MAX = 50

_NO_CHECKSUM = "0" * 64
_CHECKSUM = re.compile(r'"checksum":\s*"([0-9a-f]{64})"')

_NAME = Text(253, r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?")
_SLOT = Text(SLOT_LONGEST, SLOT_PATTERN)
_SHA256 = Text(64, r"[0-9a-f]{64}")
_KEY = Text(16, r"[0-9a-f]{16}")
_MILLI = Whole(0, 1_000)
_TOKENS = Whole()
_FREE_TEXT = Text(1_024)

_HEADER_MATCH = Record({"name": Text(256)}, {"exact": _FREE_TEXT, "prefix": _FREE_TEXT})
_MATCH = Record({}, {"model": _FREE_TEXT, "headers": Listing(_HEADER_MATCH, 16)})
_KEY_RULE = Record({"kind": OneOf(("header", "field", "prefix"))}, {"name": Text(256, ".+"), "bytes": Whole(1, 65_536)})
_ROUTE = Record({"configuration": _NAME, "shareMilli": _MILLI, "reservationTokens": _TOKENS})
_CLASS = Record(
    {
        "name": _NAME,
        "match": _MATCH,
        "keyRules": Listing(_KEY_RULE, 8),
        "routes": Listing(_ROUTE, 32),
        "admitMilli": _MILLI,
        "maxPromptTokens": _TOKENS,
        "maxOutputTokens": _TOKENS,
        "cachedPrefixTokens": _TOKENS,
        "queue": Record({"maxLength": Whole(0, 1_000_000), "deadlineMilliseconds": Whole(0, 3_600_000)}),
        "shed": OneOf(("other", "429")),
    },
    {"tenant": _NAME, "reservedPromptTokens": _TOKENS},
)
_ROUTERS = Listing(Record({"identity": Text(253, ".+"), "shareMilli": _MILLI}), 1_024)
_SLOT_ENTRY = Record(
    {
        "slot": _SLOT,
        "configuration": _NAME,
        "budgetTokens": _TOKENS,
        "weightMilli": Whole(0, 1_000_000),
        "state": OneOf(("serving", "draining", "gone")),
    },
    {"podUID": Text(64), "podName": Text(253), "address": Text(261), "routers": _ROUTERS},
)
_HOME = Record({"destinations": Listing(_SLOT, 2_048, 1)}, {"backup": _SLOT})
_SHARD = Record(
    {
        "name": Text(253, r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?-table-[0-9a-f]{16}"),
        "sha256": _SHA256,
        "keys": Whole(0),
        "bytes": Whole(1, SHARD_BYTES_MAX),
    }
)
_TOP = Record({"hash": _KEY, "requestsPerSecondMilli": Whole(), "destinations": Listing(_SLOT, 2_048, 1)})

SHAPE = Record(
    {
        "format": Whole(FORMAT, FORMAT),
        "epoch": Whole(),
        "generation": Whole(),
        "mode": OneOf(("observe", "plan")),
        "hash": Record({"name": Text(64, ".+"), "fingerprint": _KEY}),
        "hashBits": Whole(40, 64),
        "classes": Listing(_CLASS, 256),
        "unmatched": OneOf(("ColdTail", "Reject")),
        "grids": Dictionary(Text(64, "[a-zA-Z]+"), Listing(Whole(), 256, 1), 16),
        "routers": _ROUTERS,
        "slots": Listing(_SLOT_ENTRY, 2_048),
        "inline": Record(
            {"homes": Listing(_HOME, INLINE_KEYS_MAX), "keys": Dictionary(_KEY, Whole(), INLINE_KEYS_MAX)}
        ),
        "shards": Listing(_SHARD, 4_096),
        "top": Listing(_TOP, TOP_KEYS_MAX),
        "checksum": _SHA256,
    },
    {"planDigest": _SHA256, "blockTokens": Whole(1, 1_024)},
    "The index of a fleet's routing table, format 1.",
)


@dataclass(frozen=True, eq=False)
class Index:
    """A checked index document."""

    document: Mapping[str, Any]

    @property
    def order(self) -> tuple[int, int]:
        """(epoch, generation); a later pair wins."""
        return self.document["epoch"], self.document["generation"]

    @property
    def checksum(self) -> str:
        """SHA-256 of the text with the checksum's digits set to 0."""
        return str(self.document["checksum"])


def json_schema() -> dict[str, Any]:
    """The published schema (docs/contracts/index.schema.json)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://kvplan.dev/contracts/index-v{FORMAT}.schema.json",
        **SHAPE.schema(),
    }


def write_index(document: Mapping[str, Any]) -> str:
    """Write an index document as JSON text with its checksum; equal documents give equal bytes.

    Raises:
        InvalidInput: the document breaks the schema, or the text is larger than a ConfigMap may be.
    """
    blank = {**document, "checksum": _NO_CHECKSUM}
    try:
        SHAPE.check(blank, "index")
    except ValueError as fault:
        raise InvalidInput("index", "document", str(fault), "see docs/contracts/index.schema.json") from None
    text = json.dumps(blank, indent=1, sort_keys=True) + "\n"
    if len(text) > INDEX_BYTES_MAX:
        remedy = f"a ConfigMap holds {INDEX_BYTES_MAX}; lower the number of classes, slots or inline keys"
        raise InvalidInput("index", "bytes", len(text), remedy)
    return _CHECKSUM.sub(f'"checksum": "{_digest(text)}"', text)


def read_index(text: str | bytes) -> Index:
    """Read and check an index.

    Raises:
        TableRefused: Oversized, IndexChecksum, UnsupportedFormat or MalformedIndex.
    """
    plain = _plain_text(text)
    found = _CHECKSUM.findall(plain)
    if len(found) != 1 or found[0] != _digest(_CHECKSUM.sub(f'"checksum": "{_NO_CHECKSUM}"', plain)):
        raise TableRefused(RefusalReason.INDEX_CHECKSUM, f"{len(found)} checksums in the text, none matches")
    document = _parse(plain)
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT:
        raise TableRefused(RefusalReason.UNSUPPORTED_FORMAT, f"index format {version!r}, known is {FORMAT}")
    try:
        SHAPE.check(document, "index")
    except ValueError as fault:
        raise TableRefused(RefusalReason.MALFORMED_INDEX, str(fault)) from None
    return Index(document)


def _plain_text(text: str | bytes) -> str:
    if len(text) > INDEX_BYTES_MAX:
        raise TableRefused(RefusalReason.OVERSIZED, f"index of {len(text)} bytes, limit {INDEX_BYTES_MAX}")
    try:
        return text if isinstance(text, str) else text.decode("ascii")
    except UnicodeDecodeError:
        raise TableRefused(RefusalReason.INDEX_CHECKSUM, "the text is not ASCII") from None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise TableRefused(RefusalReason.MALFORMED_INDEX, f"not JSON: {fault}") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
