"""The engine's loop on a clock of the test's own."""

import asyncio
from array import array
from dataclasses import dataclass, field

import pytest

from e2e.engine.tests.workloads import limits
from kvplan_engine.core.answer_length import AnswerLength
from kvplan_engine.core.request import FinishReason, Request
from kvplan_engine.core.scheduler import Scheduler
from kvplan_engine.core.step import Step
from kvplan_engine.core.step_time import StepTime
from kvplan_engine.core.text import detokenize, tokenize
from kvplan_engine.engine import Answer, Engine

SPEED = StepTime(base_seconds=0.010, answer_seconds=0.001, prefill_tokens_per_second=1000.0)


@dataclass
class Clock:
    """Time that passes when somebody sleeps."""

    now: float = 0.0
    sleeps: int = 0

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1
        await asyncio.sleep(0)


@dataclass
class Notes:
    """Writes down what an engine reports."""

    over: list[tuple[str, FinishReason]] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    step_tokens: list[int] = field(default_factory=list)

    def admitted(self, answer: Answer) -> None:
        assert answer.scheduled is not None

    def preempted(self, requests: int) -> None:
        assert requests >= 0

    def stepped(self, tokens: int) -> None:
        self.step_tokens.append(tokens)

    def produced(self, answer: Answer, since_last: float | None) -> None:
        assert answer.last_token is not None
        if since_last is not None:
            self.gaps.append(since_last)

    def finished(self, answer: Answer, reason: FinishReason) -> None:
        self.over.append((answer.request.request_id, reason))


def _request(name: str, prompt_tokens: int, output_tokens: int) -> Request:
    return Request(name, array("I", [1] * prompt_tokens), output_tokens)


def test_times_are_those_of_the_speed_and_an_idle_engine_does_nothing() -> None:
    async def scenario() -> None:
        clock, notes = Clock(), Notes()
        engine = Engine(Scheduler(limits()), SPEED, notes, clock=clock.read, sleep=clock.sleep)
        loop = asyncio.create_task(engine.run())
        answer = engine.submit(_request("a", 100, 3))
        for _ in range(3):
            await answer.fresh.get()
        assert answer.first_token == pytest.approx(0.010 + 100 / 1000)
        assert notes.gaps == pytest.approx([0.011, 0.011])
        assert notes.step_tokens == [101, 1, 1]
        assert notes.over == [("a", FinishReason.LENGTH)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert (clock.sleeps, engine.in_flight) == (3, 0)
        loop.cancel()

    asyncio.run(scenario())


def test_an_abort_in_the_middle_of_a_step_drops_its_token() -> None:
    async def scenario() -> None:
        notes, gate = Notes(), asyncio.Event()

        async def wait_for_gate(_: float) -> None:
            await gate.wait()

        scheduler = Scheduler(limits())
        engine = Engine(scheduler, SPEED, notes, clock=Clock().read, sleep=wait_for_gate)
        loop = asyncio.create_task(engine.run())
        leaver, stayer = engine.submit(_request("leaver", 40, 9)), engine.submit(_request("stayer", 40, 1))
        await asyncio.sleep(0)
        engine.abort(leaver)
        engine.abort(leaver)
        gate.set()
        await stayer.fresh.get()
        assert leaver.fresh.empty()
        assert notes.over == [("leaver", FinishReason.ABORT), ("stayer", FinishReason.LENGTH)]
        assert scheduler.pool.free == scheduler.pool.usable
        loop.cancel()

    asyncio.run(scenario())


def _step(prompt_tokens: int, answers: int) -> Step:
    step = Step(budget=10_000)
    if prompt_tokens:
        step.assign(_request("prompt", prompt_tokens, 1), prompt_tokens)
    for number in range(answers):
        running = _request(str(number), 10, 5)
        running.answer_on()
        step.assign(running, 1)
    return step


@pytest.mark.parametrize(
    ("changes", "prompt_tokens", "answers", "seconds"),
    [
        ({}, 0, 8, 0.018),
        ({}, 500, 0, 0.510),
        ({}, 1, 0, 0.011),
        ({"tensor_parallel": 2, "scaling": 1.0}, 500, 8, (0.018 + 0.5) / 2),
        ({"tensor_parallel": 4, "scaling": 0.5}, 500, 0, 0.255),
        ({"pipeline_parallel": 2}, 500, 8, 0.018 + 0.25),
        ({"time_scale": 0.1}, 500, 0, 0.0510),
    ],
    ids=[
        "eight answers",
        "a prompt",
        "a prompt of one token is a prompt",
        "perfect tensor parallelism halves everything",
        "scaling 0.5 makes four GPUs twice as fast",
        "pipeline stages shorten the prompt part alone",
        "the time scale",
    ],
)
def test_a_step_takes_what_the_formula_says(
    changes: dict[str, float], prompt_tokens: int, answers: int, seconds: float
) -> None:
    parameters = {"base_seconds": 0.010, "answer_seconds": 0.001, "prefill_tokens_per_second": 1000.0, **changes}
    speed = StepTime(**parameters)  # type: ignore[arg-type]
    assert speed.seconds(_step(prompt_tokens, answers)) == pytest.approx(seconds)


def test_a_longer_head_of_text_has_the_same_first_tokens() -> None:
    head = "every answer begins the same way. "
    whole = tokenize(head + "and then goes on, größer")
    assert list(whole[: len(head) // 4]) == list(tokenize(head)[: len(head) // 4])
    assert detokenize(whole) == head + "and then goes on, größer"


@pytest.mark.parametrize("text", ["", "a", "abcd", "abcde", "ü" * 5])
def test_a_text_has_a_token_per_four_bytes(text: str) -> None:
    assert len(tokenize(text)) == -(-len(text.encode()) // 4)


def test_the_length_of_an_answer_follows_from_its_seed_and_has_the_stated_median() -> None:
    lengths = AnswerLength(median_tokens=100, sigma=0.8)
    drawn = [lengths.plan(str(seed), 10**9, ignore_eos=False) for seed in range(999)]
    assert drawn == [lengths.plan(str(seed), 10**9, ignore_eos=False) for seed in range(999)]
    assert sorted(tokens for tokens, _ in drawn)[499] == pytest.approx(100, rel=0.1)
    assert {reason for _, reason in drawn} == {FinishReason.STOP}
    assert lengths.plan("7", 5, ignore_eos=True) == (5, FinishReason.LENGTH)
    assert lengths.plan("7", 1, ignore_eos=False) == (1, FinishReason.LENGTH)
