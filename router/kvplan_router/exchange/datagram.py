"""One process's report to its peers, as bytes. Pure.

In: identity, requests in flight by slot, the order it acknowledged, a sequence number. Out: one datagram, and back.
Authenticated with the hash secret that all processes of a fleet share, because a forged report would steer traffic.
Must not carry keys, tenants or clients.
"""

import hashlib
import hmac
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

FORMAT = 1
BYTES_MAX = 60_000
"""Of a datagram; the longest that UDP carries is 65,507 bytes."""
_TEXT_BYTES_MAX = 1_048_576
_TAG_BYTES = 16
_PURPOSE = b"kvplan-peer-v1"


@dataclass(frozen=True)
class PeerMessage:
    """What one process says of itself.

    Attributes:
        identity: as in the index's ``routers``.
        sequence: larger than in any earlier message of this process, over restarts too.
        order: (epoch, generation) it acknowledged.
        in_flight: its requests by slot; slots with none may be left out.
    """

    identity: str
    sequence: int
    order: tuple[int, int]
    in_flight: Mapping[str, int]


def write_message(message: PeerMessage, secret: bytes) -> bytes:
    """The datagram.

    Raises:
        ValueError: it does not fit one.
    """
    held = {slot: count for slot, count in message.in_flight.items() if count}
    fields = [FORMAT, message.identity, message.sequence, *message.order, held]
    packed = zlib.compress(json.dumps(fields, separators=(",", ":")).encode(), 1)
    if len(packed) + _TAG_BYTES > BYTES_MAX:
        raise ValueError(f"a report of {len(held)} slots does not fit a datagram of {BYTES_MAX} bytes")
    return _tag(packed, secret) + packed


def read_message(data: bytes, secret: bytes) -> PeerMessage | None:
    """What a datagram says, or None for anything that no peer of ours wrote."""
    tag, packed = data[:_TAG_BYTES], data[_TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(packed, secret)):
        return None
    try:
        unpacked = zlib.decompressobj().decompress(packed, _TEXT_BYTES_MAX)
        version, identity, sequence, epoch, generation, held = json.loads(unpacked)
    except (zlib.error, ValueError):
        return None
    return PeerMessage(identity, sequence, (epoch, generation), held) if version == FORMAT else None


def _tag(packed: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=_TAG_BYTES, key=secret[:64], person=_PURPOSE).digest()
