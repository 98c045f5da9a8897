"""Lend TCP ports on 127.0.0.1 to clusters that run side by side.

Asking the kernel for a free port and closing it again lets another process have it before the component binds it. A
lease is a locked file instead, from a range that the kernel does not hand out by itself; the lock goes with its
holder, however that ends.
"""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import TextIO

_RANGE = range(20_000, 32_000)


class PortLease:
    """Ports that no other holder of a lease on this machine gets until `release`."""

    def __init__(self) -> None:
        self._locks: list[TextIO] = []
        self._directory = Path(tempfile.gettempdir()) / f"kvplan-ports-{os.getuid()}"
        self._directory.mkdir(mode=0o700, exist_ok=True)

    def take(self) -> int:
        """Return a port that is free now and stays reserved.

        Raises:
            OSError: when every port of the range is taken.
        """
        start = random.randrange(len(_RANGE))  # noqa: S311 - only so that two clusters rarely meet
        for offset in range(len(_RANGE)):
            port = _RANGE[(start + offset) % len(_RANGE)]
            if self._lock(port):
                return port
        raise OSError(f"every port of {_RANGE.start}..{_RANGE.stop - 1} on 127.0.0.1 is taken: stop other clusters")

    def release(self) -> None:
        """Give all ports back."""
        for lock in self._locks:
            lock.close()
        self._locks.clear()

    def _lock(self, port: int) -> bool:
        lock = (self._directory / str(port)).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            return False
        self._locks.append(lock)
        return True
