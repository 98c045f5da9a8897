"""A process that has the solver loaded and forks a child for every solve.

Inputs: on standard input, a Unix socket: one message per solve with two pipe ends, the request's and the answer's.
Output: a child that reads the request, answers in lines, and ends. Nothing else: which solve runs when is the
controller's decision.

No child outlives its purpose. The request's pipe is its life line: once it has read the request, the kernel ends it
as soon as the other end closes, whatever it is doing, and at the limit in any case. The server ends when its socket
closes. So a controller that dies in any way takes all of them along. The standard library's fork server is not used:
its children import the program's main module again, which here is the whole controller.
"""

import array
import fcntl
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from kvplan_operator.reconcile.solver_worker import answer

FAILED = 70
"""Exit code of a child whose request could not be read."""


def serve(control: socket.socket) -> None:
    """Fork a child per message until the socket closes; the kernel reaps them."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while ends := _receive(control):
        if os.fork() == 0:
            control.close()
            _run(*ends)
        for end in ends:
            os.close(end)


def _receive(control: socket.socket) -> list[int]:
    """The two pipe ends of the next message; none when the socket has closed."""
    ends = array.array("i")
    _, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(2 * ends.itemsize))
    for _, _, data in ancillary:
        ends.frombytes(data)
    return list(ends)


def _run(request_end: int, answer_end: int) -> NoReturn:
    """Be one solve; never returns into the server's loop."""
    code = FAILED
    try:
        request = _read(request_end)
        _tie(request_end, float(request["limitSeconds"]))
        with os.fdopen(answer_end, "w", encoding="utf-8") as out:
            answer(request, lambda line: print(json.dumps(line), file=out, flush=True))
        code = 0
    finally:
        os._exit(code)


def _read(end: int) -> Mapping[str, Any]:
    """The request: one line, for the pipe stays open after it."""
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        part = os.read(end, 1 << 16)
        if not part:
            raise EOFError
        parts.append(part)
    request: Mapping[str, Any] = json.loads(b"".join(parts))
    return request


def _tie(request_end: int, limit_seconds: float) -> None:
    """Let the kernel end this process when the pipe's other end closes, and when the time is up."""
    for number in (signal.SIGIO, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    fcntl.fcntl(request_end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(request_end, fcntl.F_SETFL, fcntl.fcntl(request_end, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([request_end], [], [], 0)[0]:
        os._exit(FAILED)  # it closed before the signal was asked for
    signal.setitimer(signal.ITIMER_REAL, limit_seconds)


if __name__ == "__main__":
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as inherited:
        serve(inherited)
