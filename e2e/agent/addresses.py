"""Lend loopback addresses to pods, one each, so that all may listen on the same port.

Linux answers on every address of 127.0.0.0/8 without any setup. A lease is a locked file, as for ports: agents and
clusters side by side never share an address, and the kernel ends the lease with its holder.
"""

import fcntl
import ipaddress
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NETWORK = ipaddress.ip_network("127.64.0.0/10")
_TRIES = 1000


@contextmanager
def lease() -> Iterator[str]:
    """Yield an address of 127.64.0.0/10 that no other pod on this machine has.

    Raises:
        OSError: when none is found.
    """
    directory = Path(tempfile.gettempdir()) / f"kvplan-addresses-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    for _ in range(_TRIES):
        address = str(_NETWORK[random.randrange(1, _NETWORK.num_addresses - 1)])  # noqa: S311
        file = directory / address
        with file.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield address
            file.unlink(missing_ok=True)
            return
    raise OSError(f"no free address in {_NETWORK} after {_TRIES} tries: stop other clusters")
