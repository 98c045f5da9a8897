"""Run one command that cannot outlive the process that asked for it.

Inputs: the owner's process id and a command. Output: the command's exit status. The command ends when it wants to,
when this process gets SIGTERM, or when the owner is gone by any means, SIGKILL included: the kernel reports the end of
the owner through a pidfd, and a parent-death signal covers the end of this process itself. What the command left
running is killed too. It imports the standard library alone and must not import the harness: it is run as a plain
file, with `python -I -S`, to start within milliseconds.
"""

import argparse
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_OWNER_IS_GONE = 125
_BETWEEN_LOOKS_SECONDS = 0.001


def main(argv: list[str]) -> int:
    """Run the command of `argv` and return its exit status (128 + signal when a signal ended it)."""
    options = _parse(argv)
    wake = _pipe_of_signals()
    owner = _watch_owner(options.owner)
    if owner is None:
        return _OWNER_IS_GONE
    status = _run(options.command, owner, wake, options.grace)
    if _readable(owner, timeout=0):
        for directory in options.remove:
            shutil.rmtree(directory, ignore_errors=True)
    return status


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tether")
    parser.add_argument("--owner", type=int, required=True, help="process id that the command must not outlive")
    parser.add_argument("--grace", type=float, default=10.0, help="seconds between SIGTERM and SIGKILL")
    parser.add_argument(
        "--remove", type=Path, action="append", default=[], help="directory to remove should the owner be gone"
    )
    parser.add_argument("command", nargs="+")
    return parser.parse_args(argv)


def _run(command: list[str], owner: int, wake: int, grace: float) -> int:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with(os.getpid()))  # noqa: PLW1509
    ended = os.pidfd_open(child.pid)
    if ended not in _readable(owner, wake, ended):
        _drain(wake)
        os.killpg(child.pid, signal.SIGTERM)
        _readable(wake, ended, timeout=grace)
    status = child.returncode = _kill_descendants(child.pid)
    return status if status >= 0 else 128 - status


def _watch_owner(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the owner ends, or None when it already has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    # The number may have been given to another process meanwhile; a parent it is not.
    return descriptor if os.getppid() == pid else None


def _pipe_of_signals() -> int:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _readable(*descriptors: int, timeout: float | None = None) -> list[int]:
    return select.select(descriptors, [], [], timeout)[0]


def _drain(wake: int) -> None:
    if _readable(wake, timeout=0):
        os.read(wake, 64)


def _die_with(parent: int) -> Callable[[], None]:
    def before_exec() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(_OWNER_IS_GONE)

    return before_exec


def _kill_descendants(first: int) -> int:
    """Kill and reap all that is left, one generation after the other; returns how the first process ended.

    The kernel's list of children leaves some out while others end, so that only its word that there is none counts.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    status = 0
    while True:
        for pid in map(int, children.read_text().split()):
            os.kill(pid, signal.SIGKILL)
        try:
            pid, ending = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == first:
            status = os.waitstatus_to_exitcode(ending)
        if pid == 0:
            select.select([], [], [], _BETWEEN_LOOKS_SECONDS)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
