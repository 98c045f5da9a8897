"""The fast transport: the extension ``kvplan_router_native`` does gRPC, this adapts it to the router.

In: a :class:`Decider`, an address, files of a certificate. Out: an ext_proc server with health services, on a thread of
its own. Must not decide anything: which reply answers which message is
specified by :mod:`exchange_state`. Source: 05-router §1b and §7.
"""

import asyncio
import atexit
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import kvplan_router_native

from kvplan_router.core.values import Decision, Released, Request, Ticket
from kvplan_router.transport.exchange_state import ExchangeRules
from kvplan_router.transport.interface import Decider
from kvplan_router.transport.messages import InFlightMode
from kvplan_router.transport.refusal import error_body
from kvplan_router.transport.usage import UsageTail

_SWITCH_SECONDS = 50e-6
"""How long the event loop may keep a decision waiting for the interpreter."""

Mapping.register(kvplan_router_native.Headers)


@dataclass(frozen=True)
class NativeListener:
    """Where and how to listen.

    Attributes:
        address: ``host:port``; port 0 takes a free one.
        certificate: PEM file of the chain; read again when it changes.
        key: PEM file of its private key; without the two, no TLS.
    """

    address: str
    certificate: Path | None = None
    key: Path | None = None


class NativeTransport:
    """See :class:`kvplan_router.transport.interface.Transport`.

    Args:
        decider: of requests; called from another thread than the event loop's.
        listener: where to listen.
        rules: of the exchange.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        decider: Decider,
        listener: NativeListener,
        rules: ExchangeRules,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.port = 0
        to_the_end = rules.in_flight is not InFlightMode.EARLY_CLOSE
        self._server = kvplan_router_native.Server(
            _Bridge(decider, clock, rules.sampled),
            listener.address,
            tls=(listener.certificate, listener.key) if listener.certificate and listener.key else None,
            body_bytes_max=rules.body_bytes_max,
            counts_to_the_end=to_the_end,
            samples=rules.in_flight is InFlightMode.TRAILERS,
        )

    async def start(self) -> None:
        """Listen; NOT_SERVING until told otherwise.

        Raises:
            OSError: the address is taken, or the certificate cannot be used.
        """
        sys.setswitchinterval(_SWITCH_SECONDS)
        atexit.register(self._server.stop)  # the thread must not outlive the interpreter
        self.port = self._server.start()

    def look(self) -> None:
        """See the protocol."""
        self._server.look()

    async def set_serving(self, serving: bool) -> None:
        """See the protocol."""
        await asyncio.to_thread(self._server.set_serving, serving)

    async def drain(self, lame_duck_seconds: float, grace_seconds: float) -> None:
        """See the protocol."""
        await asyncio.to_thread(self._server.drain, lame_duck_seconds, grace_seconds)

    async def stop(self) -> None:
        """See the protocol."""
        await asyncio.to_thread(self._server.stop)
        atexit.unregister(self._server.stop)


class _Bridge:
    """What the extension calls, from its thread; a method per event."""

    def __init__(self, decider: Decider, clock: Callable[[], float], sampled: Callable[[], bool]) -> None:
        self._decider = decider
        self.now, self.sampled, self.refusal, self.served = clock, sampled, error_body, decider.served

    def decide(self, headers: Mapping[str, str], body: bytes | None, subset: Sequence[str] | None) -> Decision:
        return self._decider.decide(Request(headers, self.now(), body, subset))

    def finish(self, ticket: Ticket, tail: bytes | None) -> None:
        usage = None
        if tail is not None:
            read = UsageTail()
            read.feed(tail)
            usage = read.result()
        self._decider.finish(ticket, usage, self.now())

    def abandon(self, ticket: object) -> None:
        self._decider.abandon(ticket, self.now())

    def release(self) -> Iterable[Released]:
        return self._decider.release(self.now())
