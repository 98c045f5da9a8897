"""Destinations that stream one event, hold the answer open, and end all answers at once when told to.

``GET /let-go`` ends them; ``GET /health`` is always well; any other request is answered by a stream. Plain asyncio: ten
thousand handlers of a web framework would take more memory and time than what is measured.

    python -m tests.bench.holding_upstream 127.0.0.1:8000 127.0.0.1:8001 …
"""

import asyncio
import sys

_OPEN = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_WELL = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_BACKLOG = 4096


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


FIRST, LAST = b"data: begun\n\n", b"data: [DONE]\n\n"


class Destinations:
    """All addresses of one process."""

    def __init__(self) -> None:
        self._let_go = asyncio.Event()

    async def serve(self, addresses: list[str]) -> None:
        """Serve until killed."""
        for address in addresses:
            host, _, port = address.rpartition(":")
            await asyncio.start_server(self._connection, host, int(port), backlog=_BACKLOG)
        await asyncio.Event().wait()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._request(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # the other side has gone

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, found, length = head.partition(b"content-length:")
        if found:
            await reader.readexactly(int(length.split(b"\r\n", 1)[0]))
        if head.startswith(b"get "):
            if head.startswith(b"get /let-go "):
                self._let_go.set()
            writer.write(_WELL)
        else:
            writer.write(_OPEN + _chunk(FIRST))
            await self._let_go.wait()
            writer.write(_chunk(LAST) + _chunk(b""))
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(Destinations().serve(sys.argv[1:]))
