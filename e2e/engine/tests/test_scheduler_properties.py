"""What holds for every workload: blocks are conserved, everything ends, and the same input does the same."""

from array import array
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.engine.tests.workloads import limits
from kvplan_engine.core.limits import Policy
from kvplan_engine.core.request import Request
from kvplan_engine.core.scheduler import Scheduler

Spec = tuple[int, int, int, int, int | None]
SPECS = st.lists(
    st.tuples(
        st.integers(1, 200),
        st.integers(1, 200),
        st.integers(0, 3),
        st.integers(0, 2),
        st.none() | st.integers(0, 500),
    ),
    min_size=1,
    max_size=8,
)
LIMITS = st.fixed_dictionaries(
    {
        "blocks": st.integers(27, 60),
        "block_tokens": st.sampled_from([16, 32]),
        "max_running": st.integers(1, 8),
        "max_batched_tokens": st.integers(8, 300),
        "watermark": st.sampled_from([0.0, 0.1]),
        "prefix_caching": st.booleans(),
        "reservations": st.booleans(),
        "policy": st.sampled_from(Policy),
        "long_prefill_tokens": st.sampled_from([0, 40]),
    }
)


def _requests(specs: list[Spec]) -> list[Request]:
    """Prompts of three families, so that some share prefixes."""
    return [
        Request(
            str(number),
            array("I", [family] * prompt),
            output,
            arrival=number,
            priority=priority,
            reservation_tokens=reservation,
        )
        for number, (prompt, output, family, priority, reservation) in enumerate(specs)
    ]


def _run(specs: list[Spec], bounds: dict[str, Any]) -> tuple[list[Request], list[tuple[int, int, int]]]:
    scheduler = Scheduler(limits(**bounds))
    requests = _requests(specs)
    for request in requests:
        scheduler.add(request)
    history = []
    while scheduler.running or scheduler.waiting:
        step = scheduler.schedule()
        assert step.work or step.preempted, "the engine stands still"
        assert step.tokens <= bounds["max_batched_tokens"]
        assert len(scheduler.running) <= bounds["max_running"]
        _assert_blocks_conserved(scheduler)
        history.append((step.tokens, len(step.preempted), scheduler.pool.free))
        scheduler.complete(step)
    assert scheduler.pool.free == scheduler.pool.usable
    return requests, history


def _assert_blocks_conserved(scheduler: Scheduler) -> None:
    held = {block for request in scheduler.running for block in request.blocks}
    assert 0 not in held
    assert len(held) + scheduler.pool.free == scheduler.pool.usable


@settings(max_examples=60, deadline=None)
@given(SPECS, LIMITS)
def test_every_request_is_served_in_full_and_every_block_comes_back(specs: list[Spec], bounds: dict[str, Any]) -> None:
    requests, _ = _run(specs, bounds)
    assert [request.generated for request in requests] == [spec[1] for spec in specs]


@settings(max_examples=20, deadline=None)
@given(SPECS, LIMITS)
def test_the_same_workload_takes_the_same_steps(specs: list[Spec], bounds: dict[str, Any]) -> None:
    assert _run(specs, bounds)[1] == _run(specs, bounds)[1]


@settings(max_examples=20, deadline=None)
@given(SPECS, LIMITS)
def test_answers_do_not_depend_on_preemption(specs: list[Spec], bounds: dict[str, Any]) -> None:
    crowded, _ = _run(specs, bounds)
    roomy, _ = _run(specs, {**bounds, "blocks": 2000, "max_running": 8})
    assert [request.tokens for request in crowded] == [request.tokens for request in roomy]
