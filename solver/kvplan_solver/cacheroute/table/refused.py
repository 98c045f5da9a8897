"""The one error of the decoder, with a reason that serves as a metric label."""

from enum import StrEnum

from kvplan_solver.errors import SolverError


class RefusalReason(StrEnum):
    """Why a table was not accepted; the old one stays in force."""

    OVERSIZED = "Oversized"
    """The index or a shard is larger than a ConfigMap may be."""
    MALFORMED_INDEX = "MalformedIndex"
    """The index is not JSON of the published schema."""
    UNSUPPORTED_FORMAT = "UnsupportedFormat"
    """The index or a shard has a format version or a hash this reader does not know."""
    INDEX_CHECKSUM = "IndexChecksum"
    """The index text does not match its own checksum."""
    STALE = "Stale"
    """(epoch, generation) is older than the table in force."""
    CONFLICTING_GENERATION = "ConflictingGeneration"
    """The same (epoch, generation) as the table in force, but another content."""
    FOREIGN_HASH = "ForeignHash"
    """The keys were hashed with another secret than the reader's."""
    SHARD_MISSING = "ShardMissing"
    """A shard that the index names was not handed over."""
    SHARD_DIGEST = "ShardDigest"
    """A shard's length or SHA-256 is not what the index says (torn, flipped, or of another generation)."""
    MALFORMED_SHARD = "MalformedShard"
    """A shard with the right digest whose content breaks the format."""


class TableRefused(SolverError):
    """An index or shard that must not replace the table in force."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}: {detail}")
