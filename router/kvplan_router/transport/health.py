"""What the gRPC health protocol answers, by service name, and the port that probes ask without TLS.

In: whether this process serves. Out: a servicer of ``grpc.health.v1``. ``liveness`` stays up for as long as the
process runs; all other names, ``""`` included, follow readiness. Source: 05-router §2.
"""

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio

from kvplan_router.transport.names import EXT_PROC_SERVICE

LIVENESS = "liveness"
FOLLOW_READINESS = ("", "readiness", EXT_PROC_SERVICE)

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """The health of one server.

    Attributes:
        servicer: to register with the server.
    """

    def __init__(self) -> None:
        self.servicer = aio.HealthServicer()

    async def set_serving(self, serving: bool) -> None:
        """Answer SERVING or NOT_SERVING, and tell those who watch."""
        await self.servicer.set(LIVENESS, _SERVING)
        for name in FOLLOW_READINESS:
            await self.servicer.set(name, _SERVING if serving else _NOT_SERVING)


class HealthServer:
    """A server of the health protocol alone.

    Attributes:
        port: it listens on, once started.
    """

    def __init__(self) -> None:
        self.port = 0
        self._health = Health()
        self._server = grpc.aio.server()

    async def start(self, address: str) -> None:
        """Listen on ``host:port``; NOT_SERVING until told otherwise.

        Raises:
            RuntimeError: the address is taken.
        """
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, self._server)
        await self._health.set_serving(False)
        self.port = self._server.add_insecure_port(address)
        await self._server.start()

    async def set_serving(self, serving: bool) -> None:
        """See :class:`Health`."""
        await self._health.set_serving(serving)

    async def stop(self) -> None:
        """Close."""
        await self._server.stop(None)
