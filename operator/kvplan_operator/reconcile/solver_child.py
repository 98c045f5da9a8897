"""Solver processes as the controller sees them: a queue, one process per solve, killed when nobody wants the answer.

Inputs: planning inputs and a limit in seconds. Output: ``Solved``: a plan, a refusal or a failure. At most so many
run at a time; further solves wait in order and none is dropped. Cancelling a solve ends its process at once. At the
limit the process is killed and the best plan that it streamed counts (04 §1). Must not load the solver library here.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.metrics import SolveOutcome
from kvplan_operator.model.problem import PlanningInputs
from kvplan_operator.reconcile.solver_process import SERVER, ForkServer, SolverProcess
from kvplan_operator.reconcile.solver_wire import encode_inputs


def _unwatched(_running: int, _waiting: int) -> None:
    """Nobody counts."""


@dataclass(frozen=True)
class Solved:
    """How a solve ended.

    Attributes:
        outcome: what it is.
        plan: the plan found, with its status; None unless the outcome is SOLVED or INCUMBENT.
        reason: why no plan exists, a word of ``ConditionReason``; empty where nobody says.
        message: why there is no plan, for people.
        seconds: wall time, waiting in the queue aside.
    """

    outcome: SolveOutcome
    plan: RoutingPlan | None = None
    reason: str = ""
    message: str = ""
    seconds: float = 0.0


class Solvers:
    """All solver processes of this controller."""

    def __init__(
        self,
        concurrency: int,
        *,
        server: tuple[str, ...] = SERVER,
        watch: Callable[[int, int], None] = _unwatched,
    ) -> None:
        """Nothing is started before the first solve.

        Args:
            concurrency: processes at a time.
            server: arguments of the interpreter that make the fork server.
            watch: told of running and waiting solves whenever they change.
        """
        self._slots = asyncio.Semaphore(concurrency)
        self._server = ForkServer(server)
        self._watch, self._running, self._waiting = watch, 0, 0

    async def solve(
        self,
        inputs: PlanningInputs,
        limit_seconds: float,
        warm: RoutingPlan | None = None,
        running: RoutingPlan | None = None,
    ) -> Solved:
        """Solve; cancelling the call kills the process.

        Args:
            inputs: what to plan from.
            limit_seconds: wall time after which the process is killed, queueing aside.
            warm: an earlier plan to start from.
            running: the plan in force, whose engine flags stay where they would change little.
        """
        request = {
            "inputs": encode_inputs(inputs),
            "limitSeconds": limit_seconds,
            "warm": None if warm is None else warm.to_wire(),
            "running": None if running is None else running.to_wire(),
        }
        async with self._slot():
            began = time.monotonic()
            solved = await self._ask(request, limit_seconds)
            return replace(solved, seconds=time.monotonic() - began)

    def start(self) -> None:
        """Start the fork server now, so that the first solve need not wait for it."""
        self._server.start()

    def close(self) -> None:
        """End the fork server; running children end with the solves that wait for them."""
        self._server.close()

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        self._count(waiting=1)
        try:
            await self._slots.acquire()
        finally:
            self._count(waiting=-1)
        self._count(running=1)
        try:
            yield
        finally:
            self._slots.release()
            self._count(running=-1)

    def _count(self, *, running: int = 0, waiting: int = 0) -> None:
        self._running, self._waiting = self._running + running, self._waiting + waiting
        self._watch(self._running, self._waiting)

    async def _ask(self, request: dict[str, Any], limit_seconds: float) -> Solved:
        try:
            child = await SolverProcess.start(self._server)
        except OSError as error:
            return Solved(SolveOutcome.FAILED, message=f"no solver process can be started: {error.strerror or error}")
        latest = _Latest()
        try:
            async with asyncio.timeout(limit_seconds):
                await child.send(request)
                async for line in child.lines():
                    latest.take(line)
        except TimeoutError:
            return latest.at_the_limit(limit_seconds)
        finally:
            child.kill()
        return latest.at_the_end()


class _Latest:
    """What a child has said so far; whatever it says, this does not fail."""

    def __init__(self) -> None:
        self._incumbent: RoutingPlan | None = None
        self._final: Solved | None = None
        self._garbage = ""

    def take(self, line: bytes) -> None:
        """One line of the answer."""
        try:
            self._read(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._garbage = f"the solver process said {line[:80]!r}: {type(error).__name__}"

    def at_the_limit(self, seconds: float) -> Solved:
        """The outcome when the time is up."""
        if self._final is not None:
            return self._final
        if self._incumbent is not None:
            return Solved(SolveOutcome.INCUMBENT, self._incumbent)
        return Solved(SolveOutcome.FAILED, message=f"no plan within {seconds:g} s: raise spec.solver.timeLimitSeconds")

    def at_the_end(self) -> Solved:
        """The outcome when the process has ended; without a last line it did not end well."""
        if self._final is not None:
            return self._final
        if self._incumbent is not None:
            return Solved(SolveOutcome.INCUMBENT, self._incumbent)
        return Solved(SolveOutcome.FAILED, message=self._garbage or "the solver process ended without an answer")

    def _read(self, line: dict[str, Any]) -> None:
        match line["kind"]:
            case "incumbent":
                self._incumbent = RoutingPlan.model_validate(line["plan"])
            case "plan":
                self._final = Solved(SolveOutcome.SOLVED, RoutingPlan.model_validate(line["plan"]))
            case "refused":
                self._final = Solved(SolveOutcome.REFUSED, reason=str(line["reason"]), message=str(line["message"]))
            case "failed":
                self._final = Solved(SolveOutcome.FAILED, message=str(line["message"]))
            case kind:
                raise ValueError(kind)
