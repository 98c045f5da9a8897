"""The life of a server process: start-up delay, serving, and the two ways vLLM ends on SIGTERM.

``--shutdown-timeout 0`` (vLLM's default): the engine stops at once and the port closes, but open requests
get neither data nor an error, and the process stays until their clients give up. With a timeout: requests in
flight go on, new ones are answered 500 while /health stays 200, and the process ends when the last one is
served or the time is over. SIGUSR1 kills the engine and leaves the server: /health answers 503.
"""

import asyncio
import logging
import signal

from aiohttp import web

from kvplan_engine.server.app import Server, build_server
from kvplan_engine.server.desk import Phase
from kvplan_engine.settings import Settings

KEEP_ALIVE_SECONDS = 5.0
"""How long vLLM keeps an idle connection."""
FLUSH_SECONDS = 1.0
"""How long finished answers may take to reach their clients after a drain."""
FOR_EVER = 10.0**9
"""Seconds; a process waits that long for clients that never give up."""
_LOG = logging.getLogger(__name__)


async def live(settings: Settings) -> None:
    """Start, serve, and end on SIGTERM or SIGINT."""
    asked_to_stop = _on_signals(signal.SIGTERM, signal.SIGINT)
    startup_seconds = settings.flags.stand_in_startup_seconds * settings.speed.time_scale
    _LOG.info("Starting %s, ready in %g s", settings.model_names[0], startup_seconds)
    if await _happens_within(asked_to_stop, startup_seconds):
        return
    server = build_server(settings)
    engine_task = _started(server)
    runner = await listen(server)
    await asked_to_stop.wait()
    await _end(server, engine_task, runner)


def _on_signals(*signals: signal.Signals) -> asyncio.Event:
    event = asyncio.Event()
    for number in signals:
        asyncio.get_running_loop().add_signal_handler(number, event.set)
    return event


async def _happens_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def listen(server: Server) -> web.AppRunner:
    """Open the port; clean the runner up to close it."""
    flags = server.settings.flags
    patience = FOR_EVER if flags.shutdown_timeout == 0 else FLUSH_SECONDS
    runner = web.AppRunner(
        server.app,
        handler_cancellation=True,  # a client that leaves aborts its request
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        access_log=None,
        shutdown_timeout=patience,
    )
    await runner.setup()
    await web.TCPSite(runner, flags.stand_in_host or flags.host, flags.port, reuse_address=True).start()
    host, port = runner.addresses[0][:2]
    _LOG.info("Application startup complete. Listening on http://%s:%s", host, port)
    return runner


def _started(server: Server) -> "asyncio.Task[None]":
    """The engine at work; SIGUSR1, or an error of its own, is its death."""
    task = asyncio.create_task(server.engine.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _die, server, task)
    task.add_done_callback(lambda done: None if done.cancelled() else _die(server, done))
    return task


def _die(server: Server, engine_task: "asyncio.Task[None]") -> None:
    server.desk.phase = Phase.DEAD
    if not engine_task.cancel():
        _LOG.error("The engine failed", exc_info=engine_task.exception())


async def _end(server: Server, engine_task: "asyncio.Task[None]", runner: web.AppRunner) -> None:
    timeout = server.settings.flags.shutdown_timeout
    if timeout > 0 and server.desk.phase is Phase.SERVING:
        server.desk.phase = Phase.DRAINING
        await _drained(server, timeout)
    engine_task.cancel()
    await runner.cleanup()


async def _drained(server: Server, timeout: float) -> None:
    """Wait until no call is open, or the time is over."""
    if not await _happens_within(server.desk.idle, timeout):
        _LOG.warning("%d requests were cut off by the shutdown timeout of %g s", server.desk.open_calls, timeout)
