"""When a fleet is looked at, in simulated time."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from kvplan_operator.logs import FleetLog
from kvplan_operator.reconcile.fleet_task import Again, FleetTask
from kvplan_operator.settings import TickSettings
from tests.simulated_time import run

SETTINGS = TickSettings(
    settling_seconds=0, spacing_seconds=1, staleness_seconds=30, backoff_seconds=2, backoff_cap_seconds=16
)
SETTLING = SETTINGS.model_copy(update={"settling_seconds": 0.1})


def ticks_of(
    seconds: float,
    marks: tuple[float, ...] = (),
    outcome: Callable[[int], Again] = lambda _: Again(),
    lasting: float = 0.0,
    urgent: tuple[float, ...] = (),
    settings: TickSettings = SETTINGS,
) -> list[float]:
    """When a fleet was looked at, if it was marked at these times and each look lasted so long."""

    async def life() -> list[float]:
        loop, seen = asyncio.get_running_loop(), list[float]()

        async def tick() -> Again:
            seen.append(round(loop.time(), 3))
            await asyncio.sleep(lasting)
            return outcome(len(seen))

        task = FleetTask(tick, settings, FleetLog("default/demo"), Random(7))
        for at in marks:
            loop.call_at(at, task.mark)
        for at in urgent:
            loop.call_at(at, partial(task.mark, urgent=True))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await task.run()
        return seen

    return run(life())


def test_a_new_fleet_is_looked_at_at_once_and_then_once_per_staleness() -> None:
    assert ticks_of(100) == [0, 30, 60, 90]


def test_marks_during_the_spacing_make_one_look_right_after_it() -> None:
    assert ticks_of(20, marks=(0.2, 0.3, 0.9)) == [0, 1]


def test_a_mark_during_a_look_is_not_lost() -> None:
    assert ticks_of(20, marks=(2.0,), lasting=5.0) == [0, 6]


def test_a_mark_at_rest_is_answered_at_once() -> None:
    assert ticks_of(20, marks=(7.5,)) == [0, 7.5]


def test_a_look_may_ask_for_the_next_one() -> None:
    assert ticks_of(12, outcome=lambda _: Again(within_seconds=4)) == [0, 4, 8]


def test_what_is_changed_together_is_seen_in_one_look() -> None:
    assert ticks_of(20, marks=(7.5, 7.55, 7.59), settings=SETTLING) == [0.1, 7.6]


def test_marks_that_go_on_do_not_put_a_look_off() -> None:
    marks = tuple(5 + n / 20 for n in range(30))
    assert ticks_of(20, marks=marks, settings=SETTLING) == [0.1, 5.1, 6.2, 7.3]


def test_an_urgent_mark_waits_neither_for_the_spacing_nor_for_others() -> None:
    assert ticks_of(20, urgent=(0.4, 7.5), settings=SETTLING) == [0.1, 0.4, 7.5]


def test_an_urgent_mark_during_a_look_is_followed_by_another_at_once() -> None:
    assert ticks_of(20, urgent=(2.0,), lasting=5.0) == [0, 5]


def test_an_urgent_mark_makes_the_looks_after_it_no_denser() -> None:
    assert ticks_of(20, marks=(0.5, 0.6), urgent=(0.4,)) == [0, 0.4, 1.4]


def _broken(_: int) -> Again:
    raise ValueError("no such node")


def test_failures_are_tried_again_with_growing_jitter_and_never_end_the_task(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="kvplan"):
        seen = ticks_of(600, outcome=_broken)
    waits = [b - a for a, b in pairwise(seen)]
    assert len(seen) > 30
    assert all(1 <= wait <= 16 for wait in waits)
    assert max(waits[:2]) <= 4 < max(waits)
    assert "no such node" in caplog.text


def test_marks_do_not_cut_the_wait_after_a_failure_short() -> None:
    marks = tuple(n / 10 for n in range(100))
    assert ticks_of(30, outcome=_broken)[:3] == ticks_of(30, marks=marks, outcome=_broken)[:3]


def test_after_a_success_the_first_failure_waits_little_again() -> None:
    def outcome(look: int) -> Again:
        return _broken(look) if look % 6 else Again(within_seconds=1)

    seen = ticks_of(300, outcome=outcome)
    after_success = [b - a for n, (a, b) in enumerate(pairwise(seen), 1) if n % 6 == 1]
    assert all(1 <= wait <= 2 for wait in after_success)
