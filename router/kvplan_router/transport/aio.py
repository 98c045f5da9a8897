"""The transport that is always there: grpc.aio with Envoy's published stubs.

In: a :class:`Decider`, an address, credentials. Out: an ext_proc server with health services. Must not decide
anything: every message goes through :class:`Exchange`. Source: 05-router §1b and §7.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc
import grpc.aio
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as ext_proc_grpc
from grpc_health.v1 import health_pb2_grpc

from kvplan_router.transport.aio_streams import Streams
from kvplan_router.transport.exchange_state import ExchangeRules
from kvplan_router.transport.health import Health
from kvplan_router.transport.interface import Decider
from kvplan_router.transport.waiting import WaitingRoom

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # a buffered body arrives in one message
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),  # a second process on the port is a mistake, not a replica
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_concurrent_streams", 1_000_000),
]


@dataclass(frozen=True)
class Listener:
    """Where and how to listen.

    Attributes:
        address: ``host:port``; port 0 takes a free one.
        credentials: None listens without TLS.
    """

    address: str
    credentials: grpc.ServerCredentials | None = None


class AioTransport:
    """See :class:`kvplan_router.transport.interface.Transport`."""

    def __init__(
        self, decider: Decider, listener: Listener, rules: ExchangeRules, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.port = 0
        self._listener = listener
        self._health = Health()
        self._waiting = WaitingRoom(decider, clock)
        self._streams = Streams(self._waiting, rules, clock)
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen; NOT_SERVING until told otherwise.

        Raises:
            RuntimeError: the address is taken.
        """
        server = self._server = grpc.aio.server(options=_OPTIONS)
        ext_proc_grpc.add_ExternalProcessorServicer_to_server(self._streams, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, server)
        await self._health.set_serving(False)
        self.port = _bind(server, self._listener)
        await server.start()

    def look(self) -> None:
        """See the protocol."""
        self._waiting.look()

    async def set_serving(self, serving: bool) -> None:
        """See the protocol."""
        await self._health.set_serving(serving)

    async def drain(self, lame_duck_seconds: float, grace_seconds: float) -> None:
        """See the protocol. grpc.aio closes its listener only together with GOAWAY, so the lame duck still accepts."""
        await self._health.set_serving(False)
        await asyncio.sleep(lame_duck_seconds)
        self._streams.let_go()
        await self._stop(grace_seconds)

    async def stop(self) -> None:
        """See the protocol."""
        await self._stop(None)

    async def _stop(self, grace_seconds: float | None) -> None:
        if self._server is not None:
            await self._server.stop(grace_seconds)


def _bind(server: grpc.aio.Server, listener: Listener) -> int:
    if listener.credentials is None:
        return int(server.add_insecure_port(listener.address))
    return int(server.add_secure_port(listener.address, listener.credentials))
