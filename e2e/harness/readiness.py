"""Wait until something holds: a deadline, and the end of the process it depends on, end the wait too.

Inputs: a check that answers truthfully and at once. It reads the monotonic clock; between two checks it waits on the
process, so that a component that dies is reported in that moment with the end of its log.
"""

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from e2e.harness.errors import NotReady
from e2e.harness.process import Process

_BETWEEN_CHECKS_SECONDS = 0.05
_ANSWER_SECONDS = 2.0


def until(check: Callable[[], bool], what: str, process: Process, seconds: float = 60.0) -> None:
    """Return when the check holds.

    Raises:
        ProcessDied: when the process ends first.
        NotReady: when the deadline passes first.
    """
    deadline = time.monotonic() + seconds
    while not check():
        if process.wait(_BETWEEN_CHECKS_SECONDS):
            raise process.died()
        if time.monotonic() > deadline:
            raise NotReady(f"{what} did not happen within {seconds:g} s; see {process.log}")


def answers(url: str, authority: Path | None = None, client: Path | None = None) -> bool:
    """Return whether a GET of the URL answers 200.

    Args:
        url: http or https on 127.0.0.1.
        authority: certificate that must have signed an https server's.
        client: file with the client's certificate and key, if the server asks for one.
    """
    context = None
    if authority is not None:
        context = ssl.create_default_context(cafile=str(authority))
        if client is not None:
            context.load_cert_chain(client)
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS, context=context) as response:  # noqa: S310
            return bool(response.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False
