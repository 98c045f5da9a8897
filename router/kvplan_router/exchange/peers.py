"""Send this process's report to its peers, and keep what they send.

In: a socket address, peers, what to report. Out: :class:`PeerReport` per peer. A lost datagram does no harm: the next
one says everything again. Must not: decide when a peer is silent (the core does).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from kvplan_router.core.in_flight import PeerReport
from kvplan_router.exchange.datagram import PeerMessage, read_message, write_message

log = logging.getLogger(__name__)

SEND_SECONDS = 0.1
"""Between two reports: 10 Hz, so that one lost datagram still leaves 5."""
FORGET_SECONDS = 600.0
"""What a silent peer acknowledged is remembered this long: it may be restarting."""

Address = tuple[str, int]


class Peers(asyncio.DatagramProtocol):
    """The other router processes of this fleet.

    Attributes:
        addresses: where to send; may be replaced at any time.
        reports: the latest of each peer, by identity.
    """

    def __init__(self, identity: str, secret: bytes, clock: Callable[[], float] = time.monotonic) -> None:
        self.addresses: frozenset[Address] = frozenset()
        self.reports: dict[str, PeerReport] = {}
        self._identity, self._secret, self._clock = identity, secret, clock
        self._sequences: dict[str, int] = {}
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self, address: Address) -> Address:
        """Listen.

        Raises:
            OSError: the address is taken.
        """
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=address)
        self._transport = transport
        host, port = transport.get_extra_info("sockname")[:2]
        return str(host), int(port)

    def close(self) -> None:
        """Stop listening."""
        if self._transport is not None:
            self._transport.close()

    def send(self, order: tuple[int, int], in_flight: dict[str, int]) -> None:
        """Tell every peer; a peer that cannot be reached is told again next time."""
        if self._transport is None or not self.addresses:
            return
        try:
            data = write_message(PeerMessage(self._identity, time.time_ns(), order, in_flight), self._secret)
        except ValueError as error:
            log.warning("peers are told nothing: %s", error)
            return
        for address in self.addresses:
            self._transport.sendto(data, address)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """Keep the latest report of a peer; anything else is ignored."""
        del addr
        message = read_message(data, self._secret)
        if message is None or message.identity == self._identity:
            return
        if message.sequence <= self._sequences.get(message.identity, 0):
            return  # overtaken on the way
        self._sequences[message.identity] = message.sequence
        now = self._clock()
        self.reports[message.identity] = PeerReport(message.identity, message.in_flight, message.order, now)

    def forget_silent(self) -> None:
        """Drop peers that have not been heard of for long."""
        now = self._clock()
        for identity, report in list(self.reports.items()):
            if now - report.heard > FORGET_SECONDS:
                del self.reports[identity], self._sequences[identity]

    def error_received(self, exc: Exception) -> None:
        """A peer that is not there (yet) answers with an ICMP error."""
        log.debug("peer exchange: %s", exc)


def addresses_of(identities: Iterable[str], own: str) -> frozenset[Address]:
    """Peers whose identity is itself an address, ``host:port`` of their exchange."""
    found = (identity.rpartition(":") for identity in identities if identity != own)
    return frozenset((host.strip("[]"), int(port)) for host, _, port in found if host and port.isdecimal())
