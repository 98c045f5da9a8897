"""Reservations per class against one limit for all: preemptions of a mixed load on two engine stand-ins, through Envoy.

Two classes, short and long, from a fixed number of clients that ask again as soon as they are answered. Both limits
come from the same r, a quantile of each class: the flag is the number of requests that fit at the mean reservation of
those in flight (06-vllm §2), the ledger gives out M by class. Three quantiles (10/11 is that of the default cost
ratio) show what each limit trades: preemptions against tokens per step.
"""

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from e2e.router.bed import Bed
from e2e.router.parts import Layout
from e2e.router.tables import ClassPolicy, WrittenTable
from e2e.vllm.pages import total
from kvplan_solver.budget import ceil_to_block
from tests.bench.report import Row, table

BLOCK_TOKENS, BLOCKS = 16, 512
CAPACITY = (BLOCKS - 1) * BLOCK_TOKENS
"""M: one block is never used."""
FRACTILES = (0.5, 0.75, 10 / 11)
CLIENTS, REQUESTS = 48, 1_200
CLASS_HEADER = "x-request-class"
TIME_SCALE = 0.5
_WAITING = (10_000, 25_000)


@dataclass(frozen=True)
class Kind:
    """A class: its share of the requests, prompt tokens, and the lognormal of its answers."""

    name: str
    share: float
    prompt_tokens: int
    median: float
    sigma: float
    longest: int

    def output_tokens(self, rng: Random) -> int:
        """Length of one answer."""
        return max(1, min(self.longest, round(self.median * rng.lognormvariate(0.0, self.sigma))))


KINDS = (Kind("chat", 0.75, 64, 60, 0.5, 300), Kind("report", 0.25, 256, 300, 0.9, 1_500))


@dataclass(frozen=True)
class Asked:
    """One request."""

    kind: Kind
    output_tokens: int


def drawn(seed: int) -> list[Asked]:
    """The same requests for every way."""
    rng = Random(seed)
    kinds = rng.choices(KINDS, [kind.share for kind in KINDS], k=REQUESTS)
    return [Asked(kind, kind.output_tokens(rng)) for kind in kinds]


def reservations(fractile: float) -> dict[str, int]:
    """r of each class, in whole blocks: prompt and the quantile of its answers."""
    found = {}
    for kind in KINDS:
        lengths = sorted(_learned(kind))
        tokens = kind.prompt_tokens + lengths[int(fractile * len(lengths))]
        found[kind.name] = ceil_to_block(tokens, BLOCK_TOKENS)
    return found


def sequences_that_fit(held: dict[str, int]) -> int:
    """The flag: M over the mean reservation of the requests in flight, which stay as long as their answers are."""
    weights = [kind.share * statistics.fmean(_learned(kind)) for kind in KINDS]
    mean = sum(w * held[kind.name] for w, kind in zip(weights, KINDS, strict=True)) / sum(weights)
    return int(CAPACITY / mean)


def _learned(kind: Kind) -> list[int]:
    rng = Random(kind.name)
    return [kind.output_tokens(rng) for _ in range(5_000)]


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
        held = reservations(fractile)
        active = sequences_that_fit(held)
        told = ", ".join(f"{name} {tokens}" for name, tokens in held.items())
        yield Way(f"{fractile:.0%}: max-num-active-seqs {active}", ("--max-num-active-seqs", str(active)))
        yield Way(f"{fractile:.0%}: ledger, {told}", reserved=held)


@dataclass
class Counted:
    """What one run came to: seconds by class, the whole, preemptions and steps of both engines."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {kind.name: [] for kind in KINDS})
    statuses: Counter[int] = field(default_factory=Counter)
    whole: float = 0.0
    preemptions: int = 0
    steps: int = 0


def section() -> str:
    """The table."""
    asked = drawn(seed=1)
    title = f"A mixed load on two engines of {CAPACITY:,} KV tokens: {REQUESTS} requests from {CLIENTS} clients"
    return table(title, [_row(way, asyncio.run(_run(way, asked)), asked) for way in ways()])


async def _run(way: Way, asked: Sequence[Asked]) -> Counted:
    engine = (
        "--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", str(BLOCKS), "--max-model-len", "2048",
        "--max-num-seqs", "128", "--stand-in-time-scale", str(TIME_SCALE), *way.flags,
    )  # fmt: skip
    with Bed(Layout(upstreams=2, engine=engine)) as bed:
        bed.publish(_table(bed.addresses, way))
        counted, queue = Counted(), iter(asked)
        began = time.monotonic()
        async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=600)) as session:
            clients = (_client(session, bed.url, queue, n, counted) for n in range(CLIENTS))
            await asyncio.gather(*clients)
        counted.whole = time.monotonic() - began
        pages = [bed.engine_page(0), bed.engine_page(1)]
        counted.preemptions = sum(int(total(page, "vllm:num_preemptions_total")) for page in pages)
        counted.steps = sum(int(total(page, "vllm:iteration_tokens_total_count")) for page in pages)
    return counted


def _table(addresses: Sequence[str], way: Way) -> WrittenTable:
    held = way.reserved or dict.fromkeys((kind.name for kind in KINDS), 1)
    classes = [
        ClassPolicy(
            name=kind.name,
            match={"headers": [{"name": CLASS_HEADER, "exact": kind.name}]},
            key_rules=(),
            reservation_tokens=held[kind.name],
            queue=_WAITING,
        )
        for kind in KINDS
    ]
    return WrittenTable(addresses, generation=2, classes=classes, budget_tokens=CAPACITY)


async def _client(session: ClientSession, url: str, queue: Iterator[Asked], number: int, counted: Counted) -> None:
    rng = Random(number)
    for asked in queue:
        prompt = f"{rng.getrandbits(16 * asked.kind.prompt_tokens):0{4 * asked.kind.prompt_tokens}x}"
        body = {"model": "tiny", "prompt": prompt, "max_tokens": asked.output_tokens, "ignore_eos": True}
        headers = {CLASS_HEADER: asked.kind.name, "content-type": "application/json"}
        began = time.monotonic()
        async with session.post(f"{url}/v1/completions", data=json.dumps(body), headers=headers) as got:
            await got.read()
        counted.statuses[got.status] += 1
        counted.seconds[asked.kind.name].append(time.monotonic() - began)


def _row(way: Way, counted: Counted, asked: Sequence[Asked]) -> Row:
    tokens = sum(one.output_tokens for one in asked)
    late = {name: statistics.quantiles(seconds, n=20)[-1] for name, seconds in counted.seconds.items()}
    return {
        "limits": way.name,
        "preemptions": str(counted.preemptions),
        "engine steps": f"{counted.steps:,}",
        "output tokens per step": f"{tokens / counted.steps:.1f}",
        "output tokens per second": f"{tokens / counted.whole:,.0f}",
        "P95 (s): " + " / ".join(late): " / ".join(f"{seconds:.2f}" for seconds in late.values()),
        "not 200": str(counted.statuses.total() - counted.statuses[200]),
    }
