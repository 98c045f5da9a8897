"""The scheduler's rules, one by one."""

from array import array

import pytest

from e2e.engine.tests.workloads import limits, request
from kvplan_engine.core.block_pool import NULL_BLOCK, BlockPool
from kvplan_engine.core.limits import Policy
from kvplan_engine.core.request import Request
from kvplan_engine.core.scheduler import Scheduler


def _prompt(number: int, tokens: int, output_tokens: int = 4, **changes: object) -> Request:
    made = request(number, output_tokens, **changes)
    return Request(
        made.request_id,
        array("I", [number + 1] * tokens),
        output_tokens,
        priority=made.priority,
        arrival=made.arrival,
        reservation_tokens=made.reservation_tokens,
    )


def _scheduler(requests: list[Request], **changes: object) -> Scheduler:
    scheduler = Scheduler(limits(**changes))
    for sent in requests:
        scheduler.add(sent)
    return scheduler


def test_the_null_block_is_never_handed_out() -> None:
    pool = BlockPool(32, caching=True)
    assert pool.usable == pool.free == 31
    assert NULL_BLOCK not in pool.take(31)
    assert pool.free == 0


def test_admission_needs_blocks_for_the_whole_prompt() -> None:
    first, second = _prompt(0, 512), _prompt(1, 500)  # 16 + 16 blocks of 31
    scheduler = _scheduler([first, second], max_batched_tokens=256)
    scheduler.complete(scheduler.schedule())
    assert scheduler.running == [first]
    assert len(first.blocks) == 8  # held block by block, as the chunks are computed
    assert scheduler.waiting.head is second


def test_without_that_rule_a_first_chunk_is_enough() -> None:
    requests = [_prompt(0, 500), _prompt(1, 500)]
    scheduler = _scheduler(requests, max_batched_tokens=600, whole_prompt=False)
    scheduler.schedule()
    assert scheduler.running == requests


def test_an_answer_takes_blocks_one_at_a_time() -> None:
    sent = _prompt(0, 31, output_tokens=40)
    scheduler = _scheduler([sent])
    held = []
    while not sent.finished:
        scheduler.complete(scheduler.schedule())
        held.append(len(sent.blocks))
    assert held[:3] == [1, 1, 2]
    assert max(held) == 3
    assert scheduler.pool.free == scheduler.pool.usable


def test_the_last_of_the_running_is_preempted_and_waits_at_the_head() -> None:
    long, victim, third = _prompt(0, 480, 60), _prompt(1, 480, 60), _prompt(2, 64)
    scheduler = _scheduler([long, victim, third])
    preempted_in = None
    while not long.finished:
        step = scheduler.schedule()
        if step.preempted:
            preempted_in = step
            assert (step.preempted, step.admitted) == ([victim], [])
            assert scheduler.waiting.head is victim
        scheduler.complete(step)
    assert preempted_in is not None
    assert victim.preemptions == 1


def test_a_preempted_request_keeps_its_text_and_is_computed_again() -> None:
    long, victim = _prompt(0, 480, 30), _prompt(1, 480, 30)
    scheduler = _scheduler([long, victim])
    while not victim.preemptions:
        scheduler.complete(scheduler.schedule())
    made = victim.generated
    assert (victim.computed, victim.blocks) == (0, [])
    assert made > 0
    while not victim.finished:
        step = scheduler.schedule()
        if victim in step.admitted:
            assert step.work[victim] + victim.computed == 480 + made
        scheduler.complete(step)
    assert victim.generated == 30


def test_under_the_priority_policy_the_least_urgent_and_latest_is_preempted() -> None:
    urgent_last = [_prompt(0, 300, 90, priority=5), _prompt(1, 300, 90, priority=0), _prompt(2, 300, 90, priority=5)]
    scheduler = _scheduler(urgent_last, policy=Policy.PRIORITY)
    assert [waiting.request_id for waiting in scheduler.waiting] == ["1", "0", "2"]
    preempted: list[Request] = []
    while not preempted:
        step = scheduler.schedule()
        scheduler.complete(step)
        preempted = step.preempted
    assert preempted == [urgent_last[2]]


def test_fcfs_ignores_the_priority() -> None:
    scheduler = _scheduler([_prompt(0, 10, priority=9), _prompt(1, 10, priority=0)])
    assert [waiting.request_id for waiting in scheduler.waiting] == ["0", "1"]


def test_a_token_budget_splits_a_prompt_over_steps() -> None:
    sent = _prompt(0, 250, output_tokens=1)
    scheduler = _scheduler([sent], max_batched_tokens=100)
    tokens = []
    while not sent.finished:
        step = scheduler.schedule()
        tokens.append(step.tokens)
        scheduler.complete(step)
    assert tokens == [100, 100, 50]


def test_without_chunked_prefill_a_prompt_waits_for_a_step_with_room() -> None:
    first, second = _prompt(0, 60), _prompt(1, 60)
    scheduler = _scheduler([first, second], max_batched_tokens=100, chunked_prefill=False)
    assert scheduler.schedule().work == {first: 60}


def test_a_long_prefill_threshold_caps_each_request() -> None:
    first, second = _prompt(0, 200), _prompt(1, 20)
    scheduler = _scheduler([first, second], long_prefill_tokens=64)
    assert scheduler.schedule().work == {first: 64, second: 20}


def test_the_watermark_binds_only_while_something_runs() -> None:
    first, second = _prompt(0, 500), _prompt(1, 450)  # 16 and 15 blocks: 31 in all
    scheduler = _scheduler([first, second], watermark=0.1)
    scheduler.schedule()
    assert scheduler.running == [first]
    assert _scheduler([_prompt(0, 32 * 31)], watermark=0.5).schedule().admitted


def test_a_reservation_beyond_the_pool_runs_alone_and_does_not_wait_for_ever() -> None:
    requests = [_prompt(number, 22, reservation_tokens=100_000) for number in range(2)]
    scheduler = _scheduler(requests, reservations=True)
    for _ in range(4):
        scheduler.complete(scheduler.schedule())
    assert requests[0].finished
    assert not requests[1].generated


def test_reservations_mean_nothing_without_the_plugin() -> None:
    scheduler = _scheduler([_prompt(number, 22, reservation_tokens=900) for number in range(3)])
    assert len(scheduler.schedule().admitted) == 3


@pytest.mark.parametrize("steps_before", [0, 1, 5], ids=["while waiting", "in its first step", "while running"])
def test_an_aborted_request_leaves_nothing_behind(steps_before: int) -> None:
    sent = _prompt(0, 100, output_tokens=50)
    scheduler = _scheduler([sent])
    for _ in range(steps_before):
        scheduler.complete(scheduler.schedule())
    scheduler.abort(sent)
    scheduler.abort(sent)
    assert (len(scheduler.running), len(scheduler.waiting)) == (0, 0)
    assert scheduler.pool.free == scheduler.pool.usable


def test_24_requests_on_8_sequences_are_8_running_and_16_waiting() -> None:
    scheduler = _scheduler([request(number, 40) for number in range(24)])
    scheduler.schedule()
    assert (len(scheduler.running), len(scheduler.waiting)) == (8, 16)
