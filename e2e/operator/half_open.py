"""A TCP proxy whose connections can go half-open: nothing is closed, nothing comes through any more.

Inputs: the port of a server on loopback. Output: a port in front of it. Connections made after ``freeze`` work. So a
firewall behaves that forgot a flow, and a node that lost its network for a moment.
"""

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from e2e.harness.commands import HOST

_CHUNK = 1 << 16


class HalfOpenProxy:
    """The proxy, on a thread of its own.

    Attributes:
        port: that it listens on.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port, self._target = port, target
        self._loop = asyncio.new_event_loop()
        self._pumps: set[asyncio.Task[None]] = set()
        self._open: list[asyncio.StreamWriter] = []
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def freeze(self) -> None:
        """Forward nothing on the connections that there are, and close none."""
        asyncio.run_coroutine_threadsafe(self._freeze(), self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, self.port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_connection(HOST, self._target)
        self._open += [writer, back]
        for source, target in ((reader, back), (onward, writer)):
            pump = asyncio.create_task(_pump(source, target))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _freeze(self) -> None:
        for pump in list(self._pumps):
            pump.cancel("frozen")
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _close(self) -> None:
        self._server.close()
        await self._freeze()
        for writer in self._open:
            writer.close()
        for writer in self._open:
            with suppress(OSError):
                await writer.wait_closed()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Forward until one side ends; a cancelled pump leaves both sides open."""
    with suppress(ConnectionError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
    target.close()
