"""What goes into a decision and what comes out of it. Pure values.

Inputs: headers, perhaps a body, perhaps a subset hint, the time. Outputs: one of five decisions. Must not
show headers or bodies in its text form: they hold prompts and tenant names. Source: 05-router §2.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kvplan_router.core.body import read_document
from kvplan_router.core.slot_account import SlotAccount

_LONGEST_NUMBER: Final = 15
"""Digits of a length; no body is a petabyte."""


class Outcome(StrEnum):
    """How a request was placed; a metric label. Every arrival has exactly one (09-contracts)."""

    PLANNED = "planned"
    """On a member of its key's home."""
    BACKUP = "backup"
    """On the planned backup: the key's one destination does not serve."""
    COLD = "cold"
    """Drawn by the class's route shares."""
    SUBSET = "subset"
    """Drawn among the destinations that the gateway allows, which left the planned ones out."""
    WAITED = "waited"
    """Placed after a wait for reserved tokens."""
    SHED = "shed"
    """Refused: not admitted, no room in time, or no class takes it."""
    UNPLANNED = "unplanned"
    """Left to the gateway: no plan is in force."""
    ERROR = "error"
    """Nothing serves it, or its client left while it waited."""


class Request:
    """One request as the transport saw it.

    Attributes:
        headers: by lower-case name.
        now: monotonic seconds.
        body: None: not seen yet, the answer may be ``NeedBody``; empty: there is none, or it is over the cap.
        subset: the gateway's subset hint, a list or comma-separated text of ``ip`` or ``ip:port``; None: no hint.
    """

    __slots__ = ("_document", "body", "headers", "now", "subset")

    def __init__(
        self,
        headers: Mapping[str, str],
        now: float,
        body: bytes | None = None,
        subset: str | Sequence[str] | None = None,
    ) -> None:
        self.headers, self.now, self.body, self.subset = headers, now, body, subset
        self._document: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        """Bytes of the body as the client wrote it; 0 where nobody says, or where it is compressed."""
        headers = self.headers
        if "content-encoding" in headers:
            return 0
        said = headers.get("content-length", "")
        if said.isascii() and said.isdecimal():
            return int(said[:_LONGEST_NUMBER])
        return len(self.body) if self.body else 0

    @property
    def document(self) -> Mapping[str, Any]:
        """The body's JSON object, parsed on first use; empty where the body is none."""
        if self._document is None:
            self._document = read_document(self.body or b"")
        return self._document


class Usage(NamedTuple):
    """Tokens of one answer as the engine counted them."""

    prompt_tokens: int
    output_tokens: int


class Ticket:
    """A claim on one slot: one request in flight and its reserved tokens, given back exactly once."""

    __slots__ = ("account", "class_name", "holds", "open", "since", "size", "tokens")

    def __init__(self, account: SlotAccount, tokens: int, class_name: str, since: float, size: int = 0) -> None:
        self.account = account
        """Where the request is in flight."""
        self.holds = account
        """Where its tokens are reserved; differs from ``account`` only while another slot served it."""
        self.tokens = tokens
        self.class_name = class_name
        self.since = since
        """When the request arrived, monotonic seconds."""
        self.size = size
        """Bytes of its body; 0: not known."""
        self.open = True


class Pick(NamedTuple):
    """Send it there.

    Attributes:
        destinations: ``ip:port``, the best first; the others are for retries. The transport puts them where the
            protocol expects them.
        headers: to set on the request besides.
        outcome: why there.
        ticket: to finish when the response ends, for whatever reason.
    """

    destinations: tuple[str, ...]
    headers: Mapping[str, str]
    outcome: Outcome
    ticket: Ticket


class Wait(NamedTuple):
    """Hold it until ``Router.release`` answers with this very ticket.

    Attributes:
        ticket: what the later answer names; ``Router.abandon`` takes it back.
        deadline: monotonic seconds; then ``Router.release`` sheds it.
    """

    ticket: object
    deadline: float


class Shed(NamedTuple):
    """Refuse it.

    Attributes:
        status: of the HTTP response.
        retry_after: seconds a client should stay away; 0: nothing to say.
        reason: for the response body; names no key and no client.
        outcome: as it was counted.
    """

    status: int
    retry_after: int
    reason: str
    outcome: Outcome = Outcome.SHED


class PassThrough(NamedTuple):
    """Let the gateway choose; nothing is reserved.

    Attributes:
        headers: to set on the request.
        ticket: to finish when the response ends, so that its tokens are counted: a plan is made from them.
        outcome: always unplanned.
    """

    headers: Mapping[str, str]
    ticket: Ticket
    outcome: Outcome = Outcome.UNPLANNED


class NeedBody(NamedTuple):
    """Ask again with the body; nothing was counted."""


Decision = Pick | Wait | Shed | PassThrough | NeedBody


class Released(NamedTuple):
    """The answer to a request that waited."""

    ticket: object
    decision: Pick | Shed
