"""The reservation on the wire: ``x-request-id: <id>-kvr<tokens>`` (09-contracts "Identities"). Pure.

The engine takes its request id from this header, and a scheduler plugin there reads the tokens. A client's own
suffix is never passed on: it would claim memory nobody granted.
"""

import re

HEADER = "x-request-id"

_MARK = "-kvr"
_CLAIM = re.compile(r"(?:-kvr[0-9]+)+\Z")


def without_claim(request_id: str) -> str:
    """A client's id without any reservation it claims."""
    return _CLAIM.sub("", request_id) if _MARK in request_id else request_id


def with_reservation(request_id: str, tokens: int) -> str:
    """The id that carries a reservation."""
    return f"{request_id}{_MARK}{tokens}"
