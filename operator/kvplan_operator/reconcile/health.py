"""/metrics, /healthz and /readyz of the operator.

Inputs: the registry, and two questions: how long the watches have been silent, whether the operator has started.
Output: an HTTP server. A process is alive as long as what it writes to its own Lease comes back through a watch: an
HTTP 200 alone would say nothing about that.
"""

import os
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from kvplan_operator.errors import OperatorError


class CannotListen(OperatorError):
    """The address of the endpoints cannot be had."""


class HealthServer:
    """The server."""

    def __init__(
        self,
        registry: CollectorRegistry,
        silence_seconds: Callable[[], float],
        longest_silence_seconds: float,
        started: Callable[[], bool],
    ) -> None:
        """Prepare.

        Args:
            registry: of the metrics.
            silence_seconds: for how long a write of ours has not come back.
            longest_silence_seconds: after which the process is to be restarted.
            started: whether the operator waits for work or does it.
        """
        self._registry, self._silence, self._longest, self._started = (
            registry, silence_seconds, longest_silence_seconds, started,
        )  # fmt: skip
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            CannotListen: the port is taken, or the address is none of this machine.
        """
        application = web.Application()
        application.add_routes([
            web.get("/metrics", self._metrics), web.get("/healthz", self._health), web.get("/readyz", self._ready),
        ])  # fmt: skip
        self._runner = web.AppRunner(application, handle_signals=False, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host or None, port).start()
        except OSError as error:
            await self.stop()
            why = os.strerror(error.errno) if error.errno else str(error)
            found = f"the setting listen (KVPLAN_LISTEN) is {host}:{port}: {why}"
            raise CannotListen(f"{found}: free port {port} or name another") from None

    async def stop(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _health(self, _: web.Request) -> web.Response:
        silence = self._silence()
        text = f"the watches have been silent for {silence:.0f} s, {self._longest:.0f} s are allowed\n"
        return web.Response(status=200 if silence <= self._longest else 500, text=text)

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(
            status=200 if self._started() else 503, text="started\n" if self._started() else "starting\n"
        )
