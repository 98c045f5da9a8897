"""Counts read off vLLM 0.32 (32 blocks of 32 tokens, 8 sequences, 40 requests of 16 clients), and ours.

``python -m e2e.engine.tests.vllm_counts`` prints the table of the README. vLLM's figures are of one to three
runs whose order of arrival is unknown; ours are means over the same orders every time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import mean

from e2e.engine.tests.workloads import clients, forty_lengths, ledger, limits, request, run
from kvplan_engine.core.request import Request
from kvplan_engine.core.scheduler import Scheduler

CAPACITY_TOKENS = 992
CLIENTS = 16
FREELY = clients(CLIENTS)
ORDERS = range(5)
"""Seeds of the orders of arrival that ours are means over."""


@dataclass(frozen=True)
class Case:
    """One policy, what vLLM did under it, and how far we may be off.

    Attributes:
        name: of the policy.
        preemptions: fewest and most that vLLM had.
        steps: fewest and most that vLLM took.
        peak_running: most requests vLLM ran at once.
        preemptions_off: by how many the mean may lie outside.
        steps_off: by what share the mean may lie outside.
        bounds: changed limits.
        reservation: tokens reserved per request, by the plugin; None without it.
        may_send: when a client sends its next request.
    """

    name: str
    preemptions: tuple[int, int]
    steps: tuple[int, int]
    peak_running: int
    preemptions_off: float = 3.0
    steps_off: float = 0.10
    bounds: Mapping[str, float] = field(default_factory=dict)
    reservation: int | None = None
    may_send: Callable[[list[Request]], bool] = FREELY


@dataclass(frozen=True)
class Measured:
    """What the stand-in did: means over the orders, and the most running in any of them."""

    preemptions: float
    steps: float
    peak_running: int


def _reserved(name: str, tokens: int, preemptions: int, steps: int, peak_running: int) -> Case:
    return Case(f"reservation {tokens} ({name})", (preemptions,) * 2, (steps,) * 2, peak_running, reservation=tokens)


def _ledger(
    name: str, tokens: int, cap: float, preemptions: tuple[int, int], steps: tuple[int, int], peak_running: int
) -> Case:
    may_send = ledger(CLIENTS, tokens, cap)
    return Case(f"ledger {tokens} ({name})", preemptions, steps, peak_running, may_send=may_send)


CASES = (
    Case("stock", (16, 27), (1315, 1444), 8, preemptions_off=20, steps_off=0.25),
    Case("watermark 0.1667", (14, 16), (1054, 1098), 8, bounds={"watermark": 0.1667}),
    Case("max-num-active-seqs 5", (5, 6), (1333, 1346), 5, bounds={"max_running": 5}),
    _reserved("q50", 115, 10, 1136, 7),
    _reserved("mean", 164, 2, 1419, 5),
    _reserved("q80", 252, 0, 2182, 3),
    _reserved("q91", 318, 1, 2022, 3),
    _reserved("max", 462, 0, 2861, 2),
    _ledger("mean, cap M", 164, CAPACITY_TOKENS, (4, 10), (1206, 1500), 6),
    _ledger("mean, cap M/1.2", 164, CAPACITY_TOKENS / 1.2, (6, 6), (1364, 1375), 5),
    _ledger("q80, cap M", 252, CAPACITY_TOKENS, (0, 1), (2202, 2264), 3),
)


def measure(case: Case) -> Measured:
    """Run a case in every order."""
    outcomes = [
        run(
            Scheduler(limits(**case.bounds, reservations=case.reservation is not None)),
            [request(*numbered, reservation_tokens=case.reservation) for numbered in enumerate(forty_lengths(order))],
            case.may_send,
        )
        for order in ORDERS
    ]
    return Measured(
        preemptions=mean(outcome.preemptions for outcome in outcomes),
        steps=mean(outcome.steps for outcome in outcomes),
        peak_running=max(outcome.peak_running for outcome in outcomes),
    )


def row(case: Case, measured: Measured) -> str:
    """A row of the README's table."""
    cells = (
        case.name,
        _span(case.preemptions),
        f"{measured.preemptions:.1f}",
        f"± {case.preemptions_off:g}",
        _span(case.steps),
        f"{measured.steps:.0f}",
        f"± {case.steps_off:.0%}",
        f"{case.peak_running} / {measured.peak_running}",
    )
    return f"| {' | '.join(cells)} |"


def _span(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


if __name__ == "__main__":
    for every in CASES:
        print(row(every, measure(every)))
