"""The engine's loop: schedule, let the step's time pass, hand out the tokens.

Inputs: a scheduler, a speed, an observer, and the clock and the sleep to use, so that a test can bring its
own. The loop sleeps until something changes when there is nothing to compute; it never polls.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from kvplan_engine.core.request import FinishReason, Request
from kvplan_engine.core.scheduler import Scheduler
from kvplan_engine.core.step import Step
from kvplan_engine.core.step_time import StepTime


@dataclass(eq=False)
class Answer:
    """A request in the engine, when things happened to it, and its tokens as they come.

    Attributes:
        request: the request.
        arrived: when it was submitted; this and the other times are seconds of the engine's clock.
        scheduled: when it was first admitted.
        first_token: when its first token was made.
        last_token: when its latest token was made.
        fresh: tokens made and not yet fetched.
    """

    request: Request
    arrived: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    fresh: "asyncio.Queue[int]" = field(default_factory=asyncio.Queue)


class Observer(Protocol):
    """Is told what happens, as it happens."""

    def admitted(self, answer: Answer) -> None:
        """A request was admitted for the first time."""

    def preempted(self, requests: int) -> None:
        """So many requests lost their blocks."""

    def stepped(self, tokens: int) -> None:
        """A step ended; ``tokens`` as vLLM counts them: whole prompts at their first token, and new tokens."""

    def produced(self, answer: Answer, since_last: float | None) -> None:
        """A token was made, so many seconds after the one before it; None for the first."""

    def finished(self, answer: Answer, reason: FinishReason) -> None:
        """A request is over."""


class Engine:
    """One engine: its queue, its loop.

    Args:
        scheduler: decides what a step computes.
        speed: says how long that takes.
        observer: is told what happens.
        clock: seconds, rising.
        sleep: passes so many seconds.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        speed: StepTime,
        observer: Observer,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler = scheduler
        self._speed = speed
        self._observer = observer
        self._clock = clock
        self._sleep = sleep
        self._answers: dict[Request, Answer] = {}
        self._step: Step | None = None
        self._changed = asyncio.Event()
        self._due = clock()

    @property
    def in_flight(self) -> int:
        """Requests waiting or running."""
        return len(self._answers)

    @property
    def backlog_tokens(self) -> int:
        """Prompt tokens of the requests that have no token yet."""
        return sum(len(r.prompt) for r, answer in self._answers.items() if answer.first_token is None)

    def submit(self, request: Request) -> Answer:
        """Queue a request."""
        request.arrival = self._clock()
        answer = self._answers[request] = Answer(request, request.arrival)
        self._scheduler.add(request)
        self._changed.set()
        return answer

    def abort(self, answer: Answer) -> None:
        """Forget a request whose client left; one that is finished is fine."""
        if self._answers.pop(answer.request, None) is None:
            return
        if self._step is not None:
            self._step.withdraw(answer.request)
        self._scheduler.abort(answer.request)
        self._observer.finished(answer, FinishReason.ABORT)
        self._changed.set()

    async def run(self) -> None:
        """Compute step after step, until cancelled."""
        while True:
            step = self._scheduler.schedule()
            self._observer.preempted(len(step.preempted))
            if step.work:
                await self._compute(step)
            elif not step.preempted:
                await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
        self._due = self._clock()

    async def _compute(self, step: Step) -> None:
        self._note_admitted(step)
        self._step = step
        await self._pass(self._speed.seconds(step))
        self._step = None
        produced = self._scheduler.complete(step)
        self._observer.stepped(sum(1 + len(r.prompt) * (r.generated == 1) for r in produced))
        for request in produced:
            self._deliver(request, self._clock())

    async def _pass(self, seconds: float) -> None:
        """Let a step's time pass, counted from when it was due: a late wake-up does not slow the engine."""
        self._due = max(self._due + seconds, self._clock() - seconds)
        await self._sleep(max(0.0, self._due - self._clock()))

    def _note_admitted(self, step: Step) -> None:
        for request in step.admitted:
            answer = self._answers[request]
            if answer.scheduled is None:
                answer.scheduled = self._clock()
                self._observer.admitted(answer)

    def _deliver(self, request: Request, now: float) -> None:
        answer = self._answers[request]
        since_last = None if answer.last_token is None else now - answer.last_token
        answer.first_token = now if answer.first_token is None else answer.first_token
        answer.last_token = now
        self._observer.produced(answer, since_last)
        if request.finished:
            del self._answers[request]
            self._observer.finished(answer, request.finish_reason)
        answer.fresh.put_nowait(request.tokens[-1])
