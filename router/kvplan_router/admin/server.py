"""The admin server: /metrics, /state, /healthz and /readyz.

In: functions that say what is now. Out: HTTP on one port. Nothing here changes anything.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from kvplan_router.metrics.page import Page
from kvplan_solver.cacheroute.router_state import RouterReport, write_state


@dataclass(frozen=True)
class AdminPages:
    """What the pages show.

    Attributes:
        metrics: the metrics page's renderer for what is now; called on the event loop, its result in a thread.
        report: of the state page.
        ready: whether the process could serve.
    """

    metrics: Callable[[], Callable[[str], Page]]
    report: Callable[[], RouterReport]
    ready: Callable[[], bool]


class AdminServer:
    """Serves the pages.

    Attributes:
        port: it listens on, once started.
    """

    def __init__(self, pages: AdminPages) -> None:
        self.port = 0
        self._pages = pages
        self._runner = web.AppRunner(_application(pages), access_log=None)

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            OSError: the address is taken.
        """
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close."""
        await self._runner.cleanup()


def _application(pages: AdminPages) -> web.Application:
    async def metrics(request: web.Request) -> web.Response:
        render = pages.metrics()
        page = await asyncio.to_thread(render, request.headers.get("accept", ""))
        return web.Response(body=page.body, headers={"content-type": page.content_type})

    async def state(_: web.Request) -> web.Response:
        return web.Response(text=write_state(pages.report()), content_type="application/json")

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        is_ready = pages.ready()
        return web.Response(text="ready\n" if is_ready else "not ready\n", status=200 if is_ready else 503)

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/state", state)
    application.router.add_get("/healthz", healthy)
    application.router.add_get("/readyz", ready)
    return application
