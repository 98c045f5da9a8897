"""The router's ledger before a stock engine: what a plan reserves per request, and what it costs.

One real engine without the plugin, one router, one Envoy. Reservations change by table, with nothing restarted: the
engine is the same for all of them, and so are the requests.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.router.bed import Bed
from e2e.router.filters import ext_proc
from e2e.router.parts import Layout
from e2e.router.tables import ClassPolicy
from e2e.vllm.conftest import Serve
from e2e.vllm.workload import POOL, POOL_TOKENS, PROMPT_TOKENS, Counts, drawn_lengths, served

PATIENT = (1000, 240_000)
"""Longest queue and deadline in milliseconds: whoever finds no room waits in the router and is never refused."""


def let_wait(document: dict[str, Any]) -> None:
    """Let Envoy bear such a wait: beyond its longest message timeout it would go on without the router."""
    ext_proc(document)["max_message_timeout"] = "300s"


@pytest.fixture
def bed(url: str) -> Iterator[Bed]:
    """A data plane before the engine."""
    with Bed(Layout(running=[url.removeprefix("http://")], edit=let_wait)) as running:
        yield running


@pytest.fixture
def url(serve: Serve) -> str:
    """A stock engine whose cache must preempt if nobody reserves."""
    return serve(*POOL)


def test_the_ledger_trades_preemptions_for_steps(url: str, bed: Bed) -> None:
    lengths = drawn_lengths(40)

    def reserving(tokens: int) -> Counts:
        policy = ClassPolicy(reservation_tokens=tokens, queue=PATIENT)
        bed.publish(bed.table.next(budget_tokens=POOL_TOKENS, classes=[policy]))
        return served(url, lengths, None, gateway=bed.url)

    ranked = sorted(lengths)
    quantiles = {share: PROMPT_TOKENS + ranked[round(share * (len(ranked) - 1))] for share in (0.5, 0.8, 0.9, 1.0)}
    found = {"the prompt": reserving(PROMPT_TOKENS)} | {str(share): reserving(r) for share, r in quantiles.items()}
    for name, counts in found.items():
        print(f"reserving {name}: {counts}")
    short = found["the prompt"].preemptions + found["0.5"].preemptions
    long = found["0.8"].preemptions + found["0.9"].preemptions
    most = found["1.0"]
    assert short > 2 * long, "long reservations preempt less than half as often; one run of 40 requests varies by some"
    assert most.preemptions == 0, "who reserves the maximum is never preempted"
    assert most.steps > found["0.5"].steps, "and pays for it in steps"
