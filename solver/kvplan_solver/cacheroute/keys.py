"""The keyed hash that stands for a key everywhere outside a router. Standard library only.

In: the fleet's secret, a class name, the rule that found the key, and its value. Out: 64 bits, written as
16 hex digits. Planner, command line, tie-breaks, metrics and tables see only that, so tenant names and
prompt data never leave a router. Must not: log or keep the secret or the value.
Contract: docs/contracts/key-hash.md (version 1); source 03-cacheroute §5.
"""

import hashlib
import re

from kvplan_solver.errors import InvalidInput

HASH_NAME = "blake2b-64-v1"
"""Name of this function in the index; another function gets another name."""

SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = hashlib.blake2b.MAX_KEY_SIZE
_HEX = re.compile(r"[0-9a-f]{16}")


def key_hash(secret: bytes, class_name: str, rule: str, value: str | bytes) -> int:
    """Hash one key to an unsigned 64-bit integer.

    Args:
        secret: the fleet's hash secret, 16 to 64 bytes.
        class_name: name of the RequestClass that matched.
        rule: canonical text of the key rule, such as ``header:x-tenant-id``, ``field:user``, ``prefix:512``.
        value: what the rule found; text is taken as UTF-8.

    Raises:
        InvalidInput: the secret is too short or too long.
    """
    digest = _keyed(secret, b"kvplan-key-v1")
    for part in (class_name, rule, value):
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big"))  # the length keeps ("ab", "c") and ("a", "bc") apart
        digest.update(data)
    return int.from_bytes(digest.digest(), "big")


def fingerprint(secret: bytes) -> str:
    """16 hex digits that tell two secrets apart and reveal neither; the index carries them.

    Raises:
        InvalidInput: the secret is too short or too long.
    """
    return _keyed(secret, b"kvplan-fp-v1").hexdigest()


def weak_secret(uid: str) -> bytes:
    """What stands in for a missing secret: derived from the fleet's uid, which is no secret at all.

    It keeps key values out of tables and metrics, but whoever can read the fleet can hash guesses and compare.

    Args:
        uid: of the ServingFleet, as the API server gave it.
    """
    return (b"kvplan-weak-" + uid.encode())[:SECRET_BYTES_MAX].ljust(SECRET_BYTES_MIN, b"\0")


def to_hex(key: int) -> str:
    """Write a 64-bit key as 16 lower-case hex digits; their code-point order is the numeric order."""
    return f"{key:016x}"


def from_hex(text: str) -> int:
    """Read a key written by :func:`to_hex`.

    Raises:
        InvalidInput: the text is not 16 lower-case hex digits.
    """
    if not _HEX.fullmatch(text):
        raise InvalidInput("key", "hash", text, "write 16 lower-case hex digits")
    return int(text, 16)


def _keyed(secret: bytes, purpose: bytes) -> "hashlib.blake2b":
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        remedy = f"use {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes"
        raise InvalidInput("hash secret", "length in bytes", len(secret), remedy)
    return hashlib.blake2b(key=secret, digest_size=8, person=purpose)
