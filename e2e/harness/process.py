"""A component of the bed as a process that ends with the harness, whatever ends the harness.

Inputs: a name, a command, a log file. Outputs: a running process that can be stopped, frozen, killed and started
again. Every process runs under `tether.py`, so nothing here needs an exit handler.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.harness.errors import BedError, ProcessDied

_TETHER = Path(__file__).with_name("tether.py")
_TAIL_BYTES = 2000


@dataclass(frozen=True)
class Command:
    """What to run.

    Attributes:
        name: the component, as in the name of its log file.
        argv: program and arguments.
        environment: variables added to the harness's own.
        grace_seconds: between SIGTERM and SIGKILL when it is stopped.
        remove: directories that nobody else can remove when the harness was killed.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    grace_seconds: float = 10.0
    remove: Sequence[Path] = ()


def tethered(command: Command) -> list[str]:
    """Return the command line that ties the command to the calling process."""
    options = ["--owner", str(os.getpid()), "--grace", str(command.grace_seconds)]
    for directory in command.remove:
        options += ["--remove", str(directory)]
    return [sys.executable, "-I", "-S", str(_TETHER), *options, "--", *command.argv]


class Process:
    """One running component."""

    def __init__(self, command: Command, logs: Path) -> None:
        self.command = command
        self.log = logs / f"{command.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = -1

    def start(self) -> None:
        """Start the component; its output is appended to the log.

        Raises:
            BedError: when it runs already.
        """
        if self.running:
            raise BedError(f"{self.command.name} runs already")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                tethered(self.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.command.environment},
                start_new_session=True,
            )
        self._ended = os.pidfd_open(self._process.pid)

    @property
    def running(self) -> bool:
        """Whether the component was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the component itself, as for SIGSTOP.

        Raises:
            ProcessDied: when it does not run.
        """
        if self._process is not None and self.running:
            tether = self._process.pid
            children = Path(f"/proc/{tether}/task/{tether}/children").read_text().split()
            if children:
                return int(children[0])
        raise self.died()

    def wait(self, seconds: float) -> bool:
        """Wait until the component ends, at most this long; return whether it has ended."""
        if self._process is None:
            return True
        select.select([self._ended], [], [], seconds)
        return not self.running

    def stop(self) -> None:
        """Send SIGTERM, SIGKILL after the grace, and return when the component is gone."""
        if self._process is not None and self.running:
            self._process.terminate()
        self._reap()

    def kill(self) -> None:
        """End the component with SIGKILL, as a crash would."""
        if self.running:
            os.kill(self.pid, signal.SIGKILL)
        self._reap()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the component, such as SIGSTOP and SIGCONT."""
        os.kill(self.pid, number)

    def died(self) -> ProcessDied:
        """Return the error that tells of the component's end, with the last lines of its log."""
        tail = self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace") if self.log.exists() else ""
        return ProcessDied(f"{self.command.name} does not run; its log {self.log} ends with:\n{tail}")

    def _reap(self) -> None:
        if self._process is None:
            return
        self._process.wait()
        os.close(self._ended)
        self._process = None
