"""Progress: silent in the first second, plain lines in a pipe, live on a terminal."""

import io
from collections.abc import Iterator

import numpy as np
import pytest

from kvplan_cli.progress import Progress, progress_line
from kvplan_solver.result import CostParts, Method, Result, Status, TracePoint


def result(cost: float, bound: float, steps: int = 2) -> Result:
    return Result(
        Method.CERTIFIED, Status.FEASIBLE, (0,), (), (16,), np.zeros((1, 1)), np.zeros((1, 1), dtype=bool), (0.0,),
        CostParts(cost, 0, 0, 0), bound, trace=(TracePoint("incumbent", cost, bound),) * steps,
    )  # fmt: skip


class Clock:
    def __init__(self, *times: float) -> None:
        self.times: Iterator[float] = iter(times)

    def __call__(self) -> float:
        return next(self.times)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_holds_cost_bound_and_gap() -> None:
    assert progress_line(result(200.0, 150.0), 2.0) == "2.0 s: cost 200, lower bound 150, gap 25.00 %"
    assert progress_line(result(200.0, float("-inf")), 2.0) == "2.0 s: cost 200, no lower bound"


def test_a_pipe_gets_at_most_a_line_a_second_after_the_first() -> None:
    stream = io.StringIO()
    with Progress("plan", stream, Clock(0.0, 0.5, 1.5, 1.9, 2.6)) as progress:
        for cost in (4.0, 3.0, 2.0, 1.0):
            progress.on_incumbent(result(cost, 1.0))
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == [
        "plan: 1.5 s: cost 3",
        "plan: 2.6 s: cost 1",
    ]


def test_a_further_solve_is_told_apart() -> None:
    stream = io.StringIO()
    with Progress("plan", stream, Clock(0.0, 1.5, 2.6)) as progress:
        progress.on_incumbent(result(4.0, 1.0, steps=1))
        progress.on_incumbent(result(8.0, 1.0, steps=1))
    assert [line.split(":")[0] for line in stream.getvalue().splitlines()] == ["plan", "plan, solve 2"]


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, False), (1.6, True)])
def test_a_terminal_shows_the_incumbent_after_the_first_second(seconds: float, shown: bool) -> None:
    now = [0.0]
    stream = Terminal()
    with Progress("plan", stream, lambda: now[0]) as progress:
        progress.on_incumbent(result(200.0, 150.0))
        now[0] = seconds
    assert ("gap 25.00 %" in stream.getvalue()) is shown
