"""The pipes and processes below a solve: a fork server, and children that end when their request's pipe closes.

Inputs: one request as JSON. Output: the lines of the answer. The other side is ``solver_server``. Nothing here outlives
the controller: the kernel closes its ends of socket and pipes, and that ends the server and every child.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

SERVER = ("-m", "kvplan_operator.reconcile.solver_server")
LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one plan; a fleet of 32 configurations with 1,024 groups each stays far below."""


class SolverProcess:
    """One solver process: its request's pipe, which is its life line, and its answer's."""

    def __init__(self, request: asyncio.StreamWriter, answer: asyncio.StreamReader, close: Callable[[], None]) -> None:
        self._request, self._answer, self._close = request, answer, close

    @classmethod
    async def start(cls, server: "ForkServer") -> "SolverProcess":
        """Have the server fork a child with two new pipes."""
        request_read, request_write = os.pipe()
        answer_read, answer_write = os.pipe()
        try:
            server.fork(request_read, answer_write)
        except BaseException:
            os.close(request_write)
            os.close(answer_read)
            raise
        finally:
            os.close(request_read)
            os.close(answer_write)
        return await cls._on(request_write, answer_read)

    @classmethod
    async def _on(cls, request_write: int, answer_read: int) -> "SolverProcess":
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=LONGEST_LINE)
        written, _ = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(request_write, "wb"))
        read, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answer_read, "rb")
        )
        writer = asyncio.StreamWriter(written, written.get_protocol(), None, loop)

        def close() -> None:
            if not written.is_closing():  # it is when the process has ended before
                written.abort()
            read.close()

        return cls(writer, reader, close)

    async def send(self, request: dict[str, Any]) -> None:
        """Write the request; a child that is gone already says so by its answer's end."""
        try:
            self._request.write(json.dumps(request).encode() + b"\n")
            await self._request.drain()
        except ConnectionError:
            return

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines of the answer until the process ends."""
        while line := await self._answer.readline():
            yield line

    def kill(self) -> None:
        """Close both pipes: the kernel ends the process."""
        self._close()


class ForkServer:
    """The fork server: started when needed, started again when it died."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start it unless it runs; it ends when our end of the socket closes, however that comes about."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
                [sys.executable, *self._arguments],
                stdin=theirs.fileno(),
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        self._control = ours

    def fork(self, request_end: int, answer_end: int) -> None:
        """Hand the child's pipe ends to the server, which forks it; tried once more on a server that just died."""
        try:
            self._send(request_end, answer_end)
        except OSError:
            self.close()
            self._send(request_end, answer_end)

    def close(self) -> None:
        """End it and wait until it is gone."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        self._process = self._control = None

    def _send(self, *ends: int) -> None:
        self.start()
        if self._control is None:
            raise OSError("the fork server has no socket")
        socket.send_fds(self._control, [b"."], list(ends))
