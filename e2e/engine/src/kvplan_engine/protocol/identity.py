"""A request's identity, and the reservation that rides on it.

vLLM takes its request id from ``x-request-id``; a router appends ``-kvr<tokens>`` to say how many tokens of
prompt plus answer the request should have reserved. Pure.
"""

import re

from kvplan_engine.protocol.call import Call

_RESERVATION = re.compile(r"-kvr(\d{1,9})$", re.ASCII)


def completion_id(call: Call, request_id: str) -> str:
    """The ``id`` of the answer."""
    return f"{'chatcmpl' if call.chat else 'cmpl'}-{request_id}"


def reservation_of(request_id: str) -> int | None:
    """Tokens to reserve; None where the identity says nothing (or nonsense)."""
    match = _RESERVATION.search(request_id)
    return int(match.group(1)) if match else None
