"""Workloads of the measurements that the stand-in is held against, driven step by step without a clock."""

import random
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from kvplan_engine.core.limits import Limits
from kvplan_engine.core.request import Request
from kvplan_engine.core.scheduler import Scheduler

PROMPT_TOKENS = 22
SMALL = {
    "blocks": 32,
    "block_tokens": 32,
    "max_running": 8,
    "max_batched_tokens": 2048,
    "max_model_len": 512,
}
"""The engine of the measurements: 31 usable blocks of 32 tokens, 8 sequences."""
QUANTILES = ((0.0, 33), (0.5, 93), (0.8, 230), (0.91, 296), (1.0, 440))
"""Output lengths of the measurements: the published q50, q80, q91 and maximum, and the lowest that gives the
published mean of 142."""


@dataclass(frozen=True)
class Outcome:
    """What one run did."""

    preemptions: int
    steps: int
    peak_running: int


def limits(**changes: object) -> Limits:
    return Limits(**{**SMALL, **changes})  # type: ignore[arg-type]


def request(number: int, output_tokens: int, **changes: object) -> Request:
    """A request whose prompt shares nothing with the others'."""
    prompt = array("I", [number + 1] * PROMPT_TOKENS)
    fields = {"arrival": float(number), "max_tokens": output_tokens, **changes}
    return Request(str(number), prompt, output_tokens, **fields)  # type: ignore[arg-type]


def forty_lengths(seed: int) -> list[int]:
    """40 output lengths with the published quantiles and mean; only their order depends on the seed."""
    lengths = [round(_quantile((rank + 0.5) / 40)) for rank in range(40)]
    random.Random(seed).shuffle(lengths)
    return lengths


def _quantile(share: float) -> float:
    for (low, shortest), (high, longest) in pairwise(QUANTILES):
        if share <= high:
            return shortest + (share - low) / (high - low) * (longest - shortest)
    raise ValueError(share)


def run(scheduler: Scheduler, requests: Iterable[Request], may_send: Callable[[list[Request]], bool]) -> Outcome:
    """Serve all requests; the next is sent as soon as ``may_send`` (given those in flight) lets it."""
    todo, in_flight = list(requests)[::-1], list[Request]()
    preemptions = steps = peak = 0
    while todo or in_flight:
        while todo and may_send(in_flight):
            in_flight.append(todo.pop())
            scheduler.add(in_flight[-1])
        step = scheduler.schedule()
        preemptions, steps = preemptions + len(step.preempted), steps + bool(step.work)
        peak = max(peak, len(scheduler.running))
        scheduler.complete(step)
        in_flight = [sent for sent in in_flight if not sent.finished]
    return Outcome(preemptions, steps, peak)


def clients(count: int) -> Callable[[list[Request]], bool]:
    """So many clients, each with one request at a time."""
    return lambda in_flight: len(in_flight) < count


def ledger(count: int, reserved_tokens: int, cap_tokens: float) -> Callable[[list[Request]], bool]:
    """So many clients, that together keep a ledger of reserved tokens below a cap."""
    return lambda in_flight: len(in_flight) < count and (len(in_flight) + 1) * reserved_tokens <= cap_tokens
