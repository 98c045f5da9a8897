"""One process of a container, which no end of the agent leaves behind.

Inputs: words, environment, working directory, log. Outputs: its exit code. It runs under the harness's tether: should
the agent be killed, the tether ends the process and its descendants. SIGTERM goes to the first process alone, as in a
container; the end of the first process is the end of all.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from e2e.agent.errors import CannotRun
from e2e.harness.process import Command, tethered

_GRACE_WITHOUT_AGENT_SECONDS = 1.0


class Child:
    """A running process."""

    def __init__(self, tether: asyncio.subprocess.Process) -> None:
        self._tether = tether

    @classmethod
    async def start(cls, words: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path) -> Self:
        """Start a process whose output is appended to the log.

        Raises:
            CannotRun: when there is no such program.
        """
        program = shutil.which(words[0], path=environment["PATH"])
        if program is None:
            raise CannotRun("StartError", f'exec: "{words[0]}": executable file not found in $PATH')
        command = Command(words[0], [program, *words[1:]], grace_seconds=_GRACE_WITHOUT_AGENT_SECONDS)
        with log.open("ab") as output:
            tether = await asyncio.create_subprocess_exec(
                *tethered(command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=directory,
                start_new_session=True,
            )
        return cls(tether)

    async def wait(self) -> int:
        """Return the exit code, 128 + N when signal N ended the process."""
        code = await self._tether.wait()
        return code if code >= 0 else 128 - code

    @property
    def ended(self) -> bool:
        """Whether the process is known to have ended."""
        return self._tether.returncode is not None

    def terminate(self) -> None:
        """Send SIGTERM to the first process."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the first process; the tether kills the others."""
        self._send(signal.SIGKILL)

    @property
    def first_process(self) -> int | None:
        """The id of the process that the words started, None before and after its life."""
        tether = self._tether.pid
        try:
            children = Path(f"/proc/{tether}/task/{tether}/children").read_text().split()
        except FileNotFoundError:
            return None
        return int(children[0]) if children else None

    def _send(self, number: signal.Signals) -> None:
        if self.ended:
            return
        pid = self.first_process
        if pid is None:  # not started yet, or just ended: the tether forwards it or ends
            self._tether.terminate()
            return
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if self.first_process == pid:  # the number was not given to another process meanwhile
                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return
        finally:
            os.close(descriptor)
