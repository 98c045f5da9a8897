"""Waiting for what another process does, with a deadline."""

import os
import select
import time
from collections.abc import Callable
from pathlib import Path

DEADLINE_SECONDS = 30.0
_BETWEEN_LOOKS_SECONDS = 0.02


def eventually(check: Callable[[], bool], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Return when the check holds; fail the test when it does not within the deadline."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        select.select([], [], [], _BETWEEN_LOOKS_SECONDS)


def ended(pid: int, seconds: float = DEADLINE_SECONDS) -> bool:
    """Return whether the process is gone, after waiting for its end at most this long."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def processes_that_mention(text: str) -> list[int]:
    """Return the processes whose command line contains the text, this one excepted."""
    others = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and int(entry.name) != os.getpid())
    return [int(entry.name) for entry in others if text in _command_line(entry)]


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
