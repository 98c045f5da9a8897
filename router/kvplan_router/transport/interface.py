"""What the transports (`aio`, `native`) have in common, and what they ask of the rest of the router.

In: a :class:`Decider`, which answers at once and does no I/O. Out: a :class:`Transport` that the process starts,
drains and stops. Both transports follow :mod:`exchange_state` message for message.
"""

from collections.abc import Iterable
from typing import Protocol

from kvplan_router.core.values import Decision, Released, Request, Ticket, Usage


class Decider(Protocol):
    """The router's core as a transport sees it. Every call is synchronous and short."""

    def decide(self, request: Request) -> Decision:
        """Where this request goes; called again with the body after ``NeedBody``."""

    def served(self, ticket: Ticket, address: str) -> None:
        """The gateway says which ``ip:port`` really answers."""

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:
        """A picked request is over, for whatever reason; False where it had ended before. ``now`` None: unseen."""

    def abandon(self, ticket: object, now: float) -> bool:
        """The client of a waiting request left; False where it waits no longer."""

    def release(self, now: float) -> Iterable[Released]:
        """Waiting requests that can be answered now: there is room, or their deadline has come."""


class Transport(Protocol):
    """A server of ext_proc and of the gRPC health protocol.

    Attributes:
        port: the TCP port it listens on, once started.
    """

    port: int

    async def start(self) -> None:
        """Listen; the health services answer NOT_SERVING until told otherwise."""

    def look(self) -> None:
        """There may be room for requests that wait, for a reason that no stream knows of: release them."""

    async def set_serving(self, serving: bool) -> None:
        """What the health services ``""``, ``readiness`` and the ext_proc service answer; ``liveness`` stays up."""

    async def drain(self, lame_duck_seconds: float, grace_seconds: float) -> None:
        """Report NOT_SERVING, let gateways notice, let go of what is only held to be counted, close without an error.

        Args:
            lame_duck_seconds: how long new requests are still served after NOT_SERVING.
            grace_seconds: at most how long open streams are waited for after that.
        """

    async def stop(self) -> None:
        """Close at once."""
