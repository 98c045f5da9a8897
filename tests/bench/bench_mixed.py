"""Reservations per class against one limit for all: preemptions of a mixed load on two engine stand-ins, through Envoy.

Two classes, short and long, from a fixed number of clients that ask again as soon as they are answered. Both limits
come from the same r, a quantile of each class's answers: the flag is the number of requests that fit at the mean
reservation of those in flight (06-vllm §2), the ledger gives out M by class and by the request's own prompt, told from
its Content-Length (docs/decisions/0009). Quantiles from 25 % to that of the default cost ratio, 10/11, show what each
limit trades: preemptions against tokens per step. Engines are read between the first fifth of the answers and the
moment when no request is left to ask: where short requests pass long ones, the end of a run is long requests alone, and
says nothing of a load that goes on.
"""

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from e2e.harness.pages import total
from e2e.router.bed import Bed
from e2e.router.parts import Layout, with_options
from e2e.router.tables import ClassPolicy, WrittenTable
from kvplan_solver.budget import ceil_to_block
from tests.bench.report import Row, table

BLOCK_TOKENS, BLOCKS = 16, 512
CAPACITY = (BLOCKS - 1) * BLOCK_TOKENS
"""M: one block is never used."""
FRACTILES = (0.25, 0.5, 0.75, 10 / 11)
CLIENTS, REQUESTS, WARM_UP = 48, 1_500, 300
CLASS_HEADER = "x-request-class"
TIME_SCALE = 0.5
READ_MILLI = "500"
"""Thousandths of the answers that the router reads: a run is short, and the router learns prompts from them."""
_WAITING = (10_000, 25_000)
_COUNTERS = ("vllm:num_preemptions_total", "vllm:iteration_tokens_total_count", "vllm:generation_tokens_total")


@dataclass(frozen=True)
class Lengths:
    """A lognormal of tokens, cut off."""

    median: float
    sigma: float
    longest: int

    def draw(self, rng: Random) -> int:
        """One length."""
        return max(1, min(self.longest, round(self.median * rng.lognormvariate(0.0, self.sigma))))

    def learned(self) -> list[int]:
        """Lengths as a plan would have measured them, ascending."""
        rng = Random(repr(self))
        return sorted(self.draw(rng) for _ in range(5_000))

    def quantile(self, share: float) -> int:
        """Of those."""
        return self.learned()[int(share * 5_000)]

    @property
    def mean(self) -> float:
        """Of those."""
        return statistics.fmean(self.learned())


@dataclass(frozen=True)
class Kind:
    """A class: its share of the requests, its prompts and its answers."""

    name: str
    share: float
    prompt: Lengths
    output: Lengths


KINDS = (
    Kind("chat", 0.75, Lengths(100, 1.0, 1_000), Lengths(60, 0.5, 300)),
    Kind("report", 0.25, Lengths(200, 0.7, 500), Lengths(300, 0.9, 1_500)),
)
LONG_PROMPT = 0.95
"""Quantile of the prompts that a plan counts."""


@dataclass(frozen=True)
class Asked:
    """One request."""

    kind: Kind
    prompt_tokens: int
    output_tokens: int


def drawn(seed: int) -> list[Asked]:
    """The same requests for every way."""
    rng = Random(seed)
    kinds = rng.choices(KINDS, [kind.share for kind in KINDS], k=REQUESTS)
    return [Asked(kind, kind.prompt.draw(rng), kind.output.draw(rng)) for kind in kinds]


def reservations(fractile: float) -> dict[str, int]:
    """R̃ of each class, in whole blocks: a long prompt and the quantile of its answers."""
    return {
        kind.name: ceil_to_block(kind.prompt.quantile(LONG_PROMPT) + kind.output.quantile(fractile), BLOCK_TOKENS)
        for kind in KINDS
    }


def sequences_that_fit(fractile: float) -> int:
    """The flag: M over the mean reservation of the requests in flight, which stay as long as their answers are."""
    weights = [kind.share * kind.output.mean for kind in KINDS]
    held = [kind.prompt.mean + kind.output.quantile(fractile) for kind in KINDS]
    return int(CAPACITY * sum(weights) / sum(w * tokens for w, tokens in zip(weights, held, strict=True)))


@dataclass(frozen=True)
class Way:
    """One set of limits: arguments of the engines, r by class; None turns the ledger off."""

    name: str
    flags: tuple[str, ...] = ()
    reserved: dict[str, int] | None = None


def ways() -> Iterator[Way]:
    """Stock, then the flag alone and the ledger alone at each fractile."""
    yield Way("stock engine")
    for fractile in FRACTILES:
        held, active = reservations(fractile), sequences_that_fit(fractile)
        told = ", ".join(f"{name} ≤ {tokens}" for name, tokens in held.items())
        yield Way(f"{fractile:.0%}: max-num-active-seqs {active}", ("--max-num-active-seqs", str(active)))
        yield Way(f"{fractile:.0%}: ledger, {told}", reserved=held)


class Reading(NamedTuple):
    """What both engines had counted at one moment, monotonic seconds."""

    at: float
    preemptions: float
    steps: float
    tokens: float

    @classmethod
    def of(cls, bed: Bed) -> "Reading":
        """Now."""
        pages = [bed.engine_page(0), bed.engine_page(1)]
        sums = (sum(total(page, name) for page in pages) for name in _COUNTERS)
        return cls(time.monotonic(), *sums)

    def since(self, before: "Reading") -> "Reading":
        """The difference."""
        return Reading(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass
class Run:
    """One run: the clients, what they saw, what the engines counted.

    Attributes:
        queue: requests that nobody has asked yet.
        seconds: of the answers, by class.
        statuses: of the answers.
        first: reading after the first answers.
        last: reading when the queue ran dry.
    """

    bed: Bed
    queue: Iterator[Asked]
    seconds: dict[str, list[float]] = field(default_factory=lambda: {kind.name: [] for kind in KINDS})
    statuses: Counter[int] = field(default_factory=Counter)
    first: Reading | None = None
    last: Reading | None = None

    async def client(self, session: ClientSession, number: int) -> None:
        """Ask, be answered, ask again."""
        rng = Random(number)
        while (asked := next(self.queue, None)) is not None:
            began = time.monotonic()
            self.statuses[await _ask(session, self.bed.url, asked, rng)] += 1
            self.seconds[asked.kind.name].append(time.monotonic() - began)
            if self.first is None and self.statuses.total() >= WARM_UP:
                self.first = await asyncio.to_thread(Reading.of, self.bed)
        if self.last is None:
            self.last = await asyncio.to_thread(Reading.of, self.bed)


def section() -> str:
    """The table."""
    asked = drawn(seed=1)
    title = f"A mixed load on two engines of {CAPACITY:,} KV tokens: {REQUESTS} requests from {CLIENTS} clients"
    return table(title, [asyncio.run(_row(way, asked)) for way in ways()])


async def _row(way: Way, asked: Sequence[Asked]) -> Row:
    engine = (
        "--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", str(BLOCKS), "--max-model-len", "2048",
        "--max-num-seqs", "128", "--stand-in-time-scale", str(TIME_SCALE), *way.flags,
    )  # fmt: skip
    with Bed(with_options(Layout(upstreams=2, engine=engine), sample_milli=READ_MILLI)) as bed:
        bed.publish(_table(bed.addresses, way))
        run = Run(bed, iter(asked))
        async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=600)) as session:
            await asyncio.gather(*(run.client(session, n) for n in range(CLIENTS)))
    return _told(way, run)


def _table(addresses: Sequence[str], way: Way) -> WrittenTable:
    held = way.reserved or dict.fromkeys((kind.name for kind in KINDS), 1)
    classes = [
        ClassPolicy(
            name=kind.name,
            match={"headers": [{"name": CLASS_HEADER, "exact": kind.name}]},
            key_rules=(),
            reservation_tokens=held[kind.name],
            prompt_tokens=kind.prompt.quantile(LONG_PROMPT) if way.reserved else 0,
            queue=_WAITING,
        )
        for kind in KINDS
    ]
    return WrittenTable(addresses, generation=2, classes=classes, budget_tokens=CAPACITY)


async def _ask(session: ClientSession, url: str, asked: Asked, rng: Random) -> int:
    """One request; the status of its answer."""
    prompt = f"{rng.getrandbits(16 * asked.prompt_tokens):0{4 * asked.prompt_tokens}x}"
    body = {"model": "tiny", "prompt": prompt, "max_tokens": asked.output_tokens, "ignore_eos": True}
    headers = {CLASS_HEADER: asked.kind.name, "content-type": "application/json"}
    async with session.post(f"{url}/v1/completions", data=json.dumps(body), headers=headers) as got:
        await got.read()
    return got.status


def _told(way: Way, run: Run) -> Row:
    assert run.first is not None
    assert run.last is not None
    counted = run.last.since(run.first)
    late = {name: statistics.quantiles(seconds, n=20)[-1] for name, seconds in run.seconds.items()}
    return {
        "limits": way.name,
        "preemptions per 100,000 tokens": f"{counted.preemptions / counted.tokens * 1e5:.0f}",
        "output tokens per step": f"{counted.tokens / counted.steps:.1f}",
        "output tokens per second": f"{counted.tokens / counted.at:,.0f}",
        "P95 (s): " + " / ".join(late): " / ".join(f"{seconds:.2f}" for seconds in late.values()),
        "not 200": str(run.statuses.total() - run.statuses[200]),
    }
