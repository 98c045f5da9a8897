"""The scheduler's counts against those read off vLLM 0.32 on the same workloads, with stated tolerances."""

from functools import cache
from pathlib import Path

import pytest

from e2e.engine.tests.vllm_counts import CAPACITY_TOKENS, CASES, CLIENTS, Case, measure, row
from e2e.engine.tests.workloads import clients, forty_lengths, ledger, limits, request, run
from kvplan_engine.core.scheduler import Scheduler

README = Path(__file__).parents[1] / "README.md"
measured = cache(lambda name: measure(next(case for case in CASES if case.name == name)))
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.parametrize(
    ("reservation", "preemptions", "peak_running"),
    [(None, 11, 8), (250, 2, 3), (422, 0, 2)],
    ids=["no reservation", "r = 250", "r = 422, the most a request needs"],
)
def test_eight_requests_of_400_tokens_preempt_exactly_as_on_vllm(
    reservation: int | None, preemptions: int, peak_running: int
) -> None:
    scheduler = Scheduler(limits(reservations=reservation is not None))
    requests = [request(number, 400, reservation_tokens=reservation) for number in range(8)]
    outcome = run(scheduler, requests, clients(8))
    assert (outcome.preemptions, outcome.peak_running) == (preemptions, peak_running)


@EVERY_CASE
def test_forty_requests_stay_within_the_stated_distance_of_vllm(case: Case) -> None:
    ours, (fewest, most), (shortest, longest) = measured(case.name), case.preemptions, case.steps
    assert fewest - case.preemptions_off <= ours.preemptions <= most + case.preemptions_off
    assert shortest * (1 - case.steps_off) <= ours.steps <= longest * (1 + case.steps_off)
    assert ours.peak_running == case.peak_running


@EVERY_CASE
def test_the_readme_shows_what_is_measured_here(case: Case) -> None:
    assert row(case, measured(case.name)) in README.read_text(encoding="utf-8").splitlines()


def test_more_reservation_means_fewer_preemptions_and_then_more_steps() -> None:
    """The U-shape that a plan trades on: lost work on one side, idle memory on the other."""
    outcomes = [measured(case.name) for case in CASES if case.reservation is not None]
    preemptions = [measured("stock").preemptions, *(outcome.preemptions for outcome in outcomes)]
    steps = [outcome.steps for outcome in outcomes]
    assert preemptions == sorted(preemptions, reverse=True)
    assert steps == sorted(steps)


def test_the_active_sequences_flag_equals_a_ledger_of_one_class_with_the_same_concurrency() -> None:
    requests = list(enumerate(forty_lengths(0)))
    flag = run(Scheduler(limits(max_running=5)), [request(*r) for r in requests], clients(CLIENTS))
    booked = run(Scheduler(limits()), [request(*r) for r in requests], ledger(CLIENTS, 164, CAPACITY_TOKENS / 1.2))
    assert flag == booked
