"""The scheduler plugin on the real engine: what is reserved per request is not preempted."""

from e2e.vllm.conftest import Serve
from e2e.vllm.workload import POOL, PROMPT_TOKENS, drawn_lengths, served

PLUGIN = "--scheduler-cls=kvplan_vllm.scheduler.ReservingScheduler"


def test_the_more_is_reserved_the_less_is_preempted_and_the_longer_it_takes(serve: Serve) -> None:
    url, lengths = serve(*POOL, PLUGIN), drawn_lengths(40)
    none = served(url, lengths, None)
    mean = served(url, lengths, PROMPT_TOKENS + sum(lengths) // len(lengths))
    most = served(url, lengths, PROMPT_TOKENS + max(lengths))
    print(f"preemptions and steps without, at the mean, at the maximum: {none}, {mean}, {most}")
    assert none.preemptions > 2 * mean.preemptions >= 0, "the mean reservation preempts less than half as often"
    assert most.preemptions == 0, "who reserves the maximum is never preempted"
    assert most.steps > mean.steps, "and pays for it in steps"
