"""Solver processes: the same plan as in-process, and none that outlives its purpose."""

import asyncio
import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kvplan_operator.metrics import SolveOutcome
from kvplan_operator.plan.planner import make_plan, solver_options
from kvplan_operator.reconcile.solver_child import Solved, Solvers
from kvplan_operator.reconcile.solver_process import ForkServer
from tests.planning import demo, fleet, inputs, inventory, request_class

T = TypeVar("T")
INPUTS = inputs()

STAND_IN = """
import os, socket, signal, sys, types
worker = types.ModuleType("kvplan_operator.reconcile.solver_worker")  # the real one takes a second to load
worker.answer = None
sys.modules[worker.__name__] = worker
from kvplan_operator.reconcile import solver_server
def answer(request, write):
    {body}
solver_server.answer = answer
with socket.socket(fileno=os.dup(0)) as control:
    solver_server.serve(control)
"""
SAY_WHO = "import pathlib; pathlib.Path({fifo!r}).write_text(str(os.getpid())); "
NEVER = "sum(iter(int, 1))"
"""Computes for ever: no signal handler of Python's would run in time."""


def stand_in(body: str) -> tuple[str, ...]:
    """The real fork server, whose children do something else than solve."""
    return ("-c", STAND_IN.format(body=body))


def solve(server: tuple[str, ...] | None = None, seconds: float = 20.0) -> Solved:
    """One solve from start to end, beside a plan in force."""
    return using(lambda solvers: solvers.solve(INPUTS, seconds, running=demo().plan), server)


def using(work: Callable[[Solvers], Awaitable[T]], server: tuple[str, ...] | None = None, concurrency: int = 2) -> T:
    """Work with solvers that are closed in the end."""

    async def life() -> T:
        solvers = Solvers(concurrency, server=server) if server else Solvers(concurrency)
        try:
            return await work(solvers)
        finally:
            solvers.close()

    return asyncio.run(life())


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """Where a child writes its process id."""
    path = tmp_path / "who"
    os.mkfifo(path)
    return path


def gone(process: int, seconds: float = 10.0) -> bool:
    """Whether a process ends, waited for as long as it takes within a bound."""
    ended, _, _ = select.select([process], [], [], seconds)
    os.close(process)
    return bool(ended)


@pytest.fixture(scope="module")
def solved() -> Solved:
    return solve()


def test_a_process_finds_the_very_plan_that_is_found_in_process(solved: Solved) -> None:
    here = make_plan(INPUTS.problem(), solver_options(INPUTS.fleet)).plan
    assert solved.plan is not None
    assert solved.plan.metadata == here.metadata
    assert solved.plan.spec == here.spec
    assert solved.plan.status.objective == here.status.objective
    assert solved.plan.status.forecast == here.status.forecast


def test_starting_from_the_plan_itself_finds_the_same_plan(solved: Solved) -> None:
    again = using(lambda solvers: solvers.solve(INPUTS, 20.0, solved.plan))
    assert again.plan is not None
    assert solved.plan is not None
    assert again.plan.spec == solved.plan.spec


def test_a_plan_that_does_not_fit_any_more_is_no_start_and_no_error(solved: Solved) -> None:
    other = inputs(classes=(request_class("chat"),))
    assert using(lambda solvers: solvers.solve(other, 20.0, solved.plan)).outcome is SolveOutcome.SOLVED


def test_a_solve_says_how_long_it_took(solved: Solved) -> None:
    assert solved.outcome is SolveOutcome.SOLVED
    assert solved.seconds > 0


def test_where_no_plan_exists_the_reason_comes_back() -> None:
    floor = fleet(nodes={"selector": {"matchLabels": {"pool": "serving"}}, "minGpus": 9})
    found = using(lambda solvers: solvers.solve(inputs(fleet=floor, inventory=inventory(4, 4)), 20.0))
    assert (found.outcome, found.reason) == (SolveOutcome.REFUSED, "MinGpusAboveBudget")
    assert "spec.nodes.minGpus" in found.message


INCUMBENT = "write({'kind': 'incumbent', 'plan': request['running']}); "


@pytest.mark.parametrize(
    ("body", "outcome", "message"),
    [
        pytest.param(
            "os.kill(os.getpid(), signal.SIGKILL)", SolveOutcome.FAILED, "ended without an answer", id="killed"
        ),
        pytest.param("os._exit(3)", SolveOutcome.FAILED, "ended without an answer", id="left"),
        pytest.param("raise SystemError('no luck')", SolveOutcome.FAILED, "ended without an answer", id="raised"),
        pytest.param("write({'kind': 'surprise'})", SolveOutcome.FAILED, "surprise", id="unknown kind"),
        pytest.param("write({'kind': 'plan', 'plan': {}})", SolveOutcome.FAILED, "ValidationError", id="no plan"),
        pytest.param("write([1, 2])", SolveOutcome.FAILED, "[1, 2]", id="no mapping"),
        pytest.param("os.write(1, b'')", SolveOutcome.FAILED, "ended without an answer", id="silent"),
        pytest.param("write({'kind': 'failed', 'message': 'LP'})", SolveOutcome.FAILED, "LP", id="failed"),
        pytest.param(INCUMBENT + "os._exit(3)", SolveOutcome.INCUMBENT, "", id="left after an incumbent"),
    ],
)
def test_however_a_process_ends_the_outcome_says_so(body: str, outcome: SolveOutcome, message: str) -> None:
    found = solve(stand_in(body))
    assert found.outcome is outcome
    assert message in found.message
    assert (found.plan is not None) == (outcome is SolveOutcome.INCUMBENT)


def test_at_the_limit_the_best_plan_that_was_streamed_counts() -> None:
    found = solve(stand_in(INCUMBENT + NEVER), seconds=4.0)
    assert found.outcome is SolveOutcome.INCUMBENT
    assert found.plan is not None


def test_at_the_limit_without_any_plan_the_remedy_is_named() -> None:
    found = solve(stand_in(NEVER), seconds=0.3)
    assert found.outcome is SolveOutcome.FAILED
    assert "timeLimitSeconds" in found.message


def test_cancelling_a_solve_ends_its_process_at_once(fifo: Path) -> None:
    async def work(solvers: Solvers) -> int:
        task = asyncio.create_task(solvers.solve(INPUTS, 600.0))
        process = os.pidfd_open(int(await asyncio.to_thread(fifo.read_text)))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return process

    assert gone(using(work, stand_in(SAY_WHO.format(fifo=str(fifo)) + NEVER)))


def test_solves_wait_in_order_and_none_is_dropped() -> None:
    order: list[int] = []

    async def one(solvers: Solvers, number: int) -> Solved:
        found = await solvers.solve(INPUTS, 20.0)
        order.append(number)
        return found

    async def work(solvers: Solvers) -> list[Solved]:
        return await asyncio.gather(*(one(solvers, number) for number in range(4)))

    found = using(work, stand_in("write({'kind': 'failed', 'message': 'x'})"), concurrency=1)
    assert order == [0, 1, 2, 3]
    assert [solved.message for solved in found] == ["x"] * 4


def test_a_cancelled_solve_makes_room_for_the_next(fifo: Path) -> None:
    async def work(solvers: Solvers) -> Solved:
        first = asyncio.create_task(solvers.solve(INPUTS, 600.0))
        await asyncio.to_thread(fifo.read_text)
        second = asyncio.create_task(solvers.solve(INPUTS, 600.0))
        first.cancel()
        await asyncio.to_thread(fifo.read_text)
        second.cancel()
        await asyncio.wait([first, second])
        return Solved(SolveOutcome.CANCELLED)

    assert using(work, stand_in(SAY_WHO.format(fifo=str(fifo)) + NEVER), concurrency=1).plan is None


def test_a_dead_fork_server_is_started_again() -> None:
    async def work(solvers: Solvers) -> tuple[Solved, Solved]:
        first = await solvers.solve(INPUTS, 20.0)
        server = solvers._server._process
        assert server is not None
        server.kill()
        server.wait()
        return first, await solvers.solve(INPUTS, 20.0)

    first, second = using(work, stand_in("write({'kind': 'failed', 'message': 'x'})"))
    assert first.message == second.message == "x"


CONTROLLER = """
import asyncio, sys
from kvplan_operator.reconcile.solver_child import Solvers
from tests.planning import inputs
async def main():
    solvers = Solvers(1, server=("-c", sys.argv[1]))
    solvers.start()
    print(solvers._server._process.pid, flush=True)
    await solvers.solve(inputs(), 600.0)
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_controller_that_dies_takes_server_and_children_along(number: signal.Signals, fifo: Path) -> None:
    server_code = stand_in(SAY_WHO.format(fifo=str(fifo)) + NEVER)[1]
    command = [sys.executable, "-c", CONTROLLER, server_code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as controller:
        assert controller.stdout is not None
        server = os.pidfd_open(int(controller.stdout.readline()))
        child = os.pidfd_open(int(fifo.read_text()))
        controller.send_signal(number)
    assert gone(child)
    assert gone(server)


def test_a_process_that_cannot_be_started_is_a_failed_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(ForkServer, "fork", refuse)
    found = solve()
    assert (found.outcome, found.message) == (
        SolveOutcome.FAILED,
        "no solver process can be started: Too many open files",
    )
