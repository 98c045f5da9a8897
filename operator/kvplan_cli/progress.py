"""What the search has found so far, on stderr: live on a terminal, plain lines otherwise.

Inputs: incumbents as ``Options.on_incumbent`` streams them. Output: objective, bound and gap. Nothing is
shown in the first second, so that a quick solve stays silent.
"""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from kvplan_cli.output import number, percent
from kvplan_solver.result import Result

QUIET_SECONDS = 1.0
LINE_EVERY_SECONDS = 1.0


def progress_line(result: Result, seconds: float) -> str:
    """One incumbent in words."""
    bounded = result.lower_bound != float("-inf")
    proven = f"lower bound {number(result.lower_bound)}, gap {percent(result.gap, 2)}" if bounded else "no lower bound"
    return f"{seconds:.1f} s: cost {number(result.objective)}, {proven}"


class Progress:
    """A context in which incumbents are shown.

    Attributes:
        clock: monotonic seconds; give it to the solver as well.
    """

    def __init__(self, what: str, stream: TextIO | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.what, self.clock = what, clock
        self._stream = stream if stream is not None else sys.stderr
        self._began = self._last_line = clock()
        self._latest: Result | None = None
        self._solve = 0
        self._live = self._make_live() if self._stream.isatty() else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def on_incumbent(self, result: Result) -> None:
        """Take a new incumbent; the first one of a solve starts a new count, for a plan may take several."""
        self._latest = result
        self._solve += len(result.trace) <= 1
        now = self.clock()
        if result.lower_bound == float("-inf"):
            return  # the first plan of every solve rejects everything: nothing worth a line
        if self._live or now - self._began < QUIET_SECONDS or now - self._last_line < LINE_EVERY_SECONDS:
            return
        self._last_line = now
        self._stream.write(f"{self._subject}: {progress_line(result, now - self._began)}\n")
        self._stream.flush()

    @property
    def _subject(self) -> str:
        return f"{self.what}, solve {self._solve}" if self._solve > 1 else self.what

    def _make_live(self) -> Live:
        console = Console(file=self._stream, highlight=False)
        return Live(get_renderable=self._shown, console=console, transient=True, refresh_per_second=5)

    def _shown(self) -> RenderableType:
        seconds = self.clock() - self._began
        if seconds < QUIET_SECONDS:
            return Text("")
        found = progress_line(self._latest, seconds) if self._latest else f"{seconds:.1f} s"
        return Spinner("line", Text(f"{self._subject}: {found}"))
