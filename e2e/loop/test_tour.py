"""docs/tour.md: the world that it starts with, every command as printed, and what each is said to print.

``KVPLAN_WRITE_DOCS=1`` writes the outputs anew instead.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from e2e.harness.paths import REPOSITORY
from e2e.loop.tour import FAREWELL, LAST_LINE
from e2e.operator.documented_commands import blocks, masked, rewritten, shell

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DOCUMENT = REPOSITORY / "docs" / "tour.md"
_EXPORT = re.compile(r"^export (\w+)=", re.MULTILINE)
_PASSING = re.compile(r"^(?:reconciling|not ready|the operator has not looked at it yet).*\n", re.MULTILINE)
"""What `kvplan approve --wait` tells on the way."""
_MASKS = (
    (re.compile(r"cmpl-[-0-9a-f]+-kvr"), "cmpl-ID-kvr"),
    (re.compile(r'"created": \d+'), '"created": TIME'),
    (re.compile(r'"text": ".*"'), '"text": WORDS'),
    (re.compile(r"generation \d+"), "generation N"),
)


@dataclass
class Tour:
    """The program as a newcomer sees it.

    Attributes:
        said: until it was ready.
        exports: the lines to paste.
        farewell: what it said after Ctrl-C.
        code: its exit status.
    """

    said: str = ""
    exports: tuple[str, ...] = ()
    farewell: str = ""
    code: int | None = None

    def type(self, command: str) -> str:
        """What a shell prints for a command, after the lines to paste."""
        return shell("\n".join([*self.exports, command]), os.environ, REPOSITORY)


@contextmanager
def started() -> Iterator[Tour]:
    """The world as `make tour` starts it, and as Ctrl-C ends it."""
    tour = Tour()
    command = [sys.executable, "-m", "e2e.loop.tour"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            for line in program.stdout:
                tour.said += line
                if line.strip() == LAST_LINE:
                    break
            tour.exports = tuple(line for line in tour.said.splitlines() if line.startswith("export "))
            yield tour
        finally:
            program.send_signal(signal.SIGINT)
            tour.farewell, tour.code = program.stdout.read(), program.wait()


def compared(output: str) -> str:
    """An output without what differs from run to run."""
    text = _PASSING.sub("", output)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return masked(text)


def test_every_command_of_the_tour_prints_what_the_tour_says() -> None:
    pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
    outputs: list[str] = []
    differing: list[tuple[str, str]] = []
    with started() as tour:
        for block in blocks(DOCUMENT):
            for command, stated in block.commands:
                outputs.append(tour.type(command))
                differing += [(command, outputs[-1])] if compared(outputs[-1]) != compared(stated) else []
    assert (tour.code, tour.farewell.strip()) == (0, FAREWELL)
    assert _EXPORT.findall(tour.said) == _EXPORT.findall(DOCUMENT.read_text(encoding="utf-8"))
    if os.environ.get("KVPLAN_WRITE_DOCS"):
        DOCUMENT.write_text(rewritten(outputs, DOCUMENT), encoding="utf-8")
    else:
        assert differing == []
