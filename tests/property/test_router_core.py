"""Statements about all requests: never a raise, never a leak, never a starved class, always the same from one seed."""

import json
from collections import Counter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_router.core.decide import Router
from kvplan_router.core.keys import key_hasher
from kvplan_router.core.values import NeedBody, Outcome, PassThrough, Pick, Request, Shed, Wait
from kvplan_solver.cacheroute.keys import key_hash
from tests.unit.router_world import (
    SECRET,
    TENANT_HEADER,
    document,
    home,
    picked,
    request,
    request_class,
    router,
    routes,
    slot,
    slot_of,
)

relaxed = settings(deadline=None, max_examples=50)
"""A busy machine must not fail a test."""

RULES = [
    {"kind": "header", "name": TENANT_HEADER},
    {"kind": "field", "name": "prompt_cache_key"},
    {"kind": "field", "name": "user"},
    {"kind": "prefix", "bytes": 64},
]
HOMES = {f"t{n}": home(f"a-{n % 3}", f"a-{(n + 1) % 3}") for n in range(6)}
QUEUE = {"maxLength": 20, "deadlineMilliseconds": 1_000}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
chats = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("model", "messages", "prompt", "input", "user", "prompt_cache_key", "cache_salt"), json_values
    ),
)
bodies = st.one_of(st.none(), st.binary(max_size=200), st.builds(lambda d: json.dumps(d).encode(), chats))
header_names = st.sampled_from([TENANT_HEADER, "x-session-id", "x-request-id", "x-class", "x-gateway-model-name"])
headers = st.dictionaries(header_names | st.text(max_size=12), st.text(max_size=40), max_size=6)
subsets = st.one_of(
    st.none(), st.text(max_size=40), st.lists(st.text(max_size=20) | st.just("10.1.0.1:8000"), max_size=4)
)


@given(secret=st.binary(min_size=16, max_size=64), name=st.text(), rule=st.text(), value=st.text() | st.binary())
@relaxed
def test_the_router_hashes_keys_as_everybody_else(secret: bytes, name: str, rule: str, value: str | bytes) -> None:
    assert key_hasher(secret, name, rule)(value) == key_hash(secret, name, rule, value)


@given(st.lists(st.tuples(headers, bodies, subsets, st.floats(0, 100)), max_size=12))
@relaxed
def test_whatever_arrives_gets_a_decision_and_one_outcome(
    arrivals: list[tuple[dict[str, str], Any, Any, float]],
) -> None:
    made = router(document(classes=[request_class(keyRules=RULES, match={"model": "m"}), request_class("rest")]), HOMES)
    counted = 0
    for given_headers, body, subset, now in arrivals:
        decision = made.decide(Request(given_headers, now, body, subset))
        assert isinstance(decision, Pick | Wait | Shed | PassThrough | NeedBody)
        counted += not isinstance(decision, NeedBody)
    assert counted == sum(sum(v.outcomes.values()) for v in made.measurements().classes.values())


def deep(depth: int) -> bytes:
    return b'{"messages": ' + b"[" * depth + b"]" * depth + b"}"


def test_a_body_too_deep_to_read_is_no_body() -> None:
    made = router(document(classes=[request_class(keyRules=RULES)]))
    for depth in (500, 900, 100_000):
        assert isinstance(made.decide(request(body=deep(depth))), Pick)


@given(st.text("0123456789abcdefghijk", min_size=24, max_size=40))
@relaxed
def test_nothing_that_identifies_a_client_leaves_the_core(marker: str) -> None:
    body = json.dumps({"prompt": marker + "p", "user": marker, "prompt_cache_key": marker}).encode()
    made = router(document(classes=[request_class(keyRules=RULES, queue=QUEUE)]), HOMES)
    sent = [
        Request({TENANT_HEADER: marker}, 0.0, body),
        Request({"x-session-id": marker}, 0.0, body),
        Request({"authorization": marker}, 0.0, body),
    ]
    shown = []
    for one in sent * 12:  # until some wait and some are refused
        shown += [repr(one), repr(made.decide(one))]
    shown += [repr(made), repr(made.state()), repr(made.measurements()), repr(made.release(5.0))]
    assert not [text for text in shown if marker in text]
    assert not [text for text in shown if SECRET.decode() in text or SECRET.hex() in text]


@given(st.integers(0, 2**32), st.lists(st.tuples(st.sampled_from([*HOMES, "cold", None]), st.booleans()), max_size=60))
@relaxed
def test_the_same_seed_decides_the_same(seed: int, steps: list[tuple[str | None, bool]]) -> None:
    def told(made: Router) -> list[Any]:
        out: list[Any] = []
        open_tickets = []
        for tenant, end in steps:
            decision = made.decide(request(tenant))
            out.append((type(decision), getattr(decision, "destinations", None), getattr(decision, "headers", None)))
            open_tickets += [decision.ticket] if isinstance(decision, Pick) else []
            if end and open_tickets:
                made.finish(open_tickets.pop(0))
            out += [slot_of(r.decision) for r in made.release(0.0)]
        return out

    head = document(classes=[request_class(queue=QUEUE)], slots=[slot(f"a-{n}", budgetTokens=300) for n in range(3)])
    assert told(router(head, HOMES, seed=seed)) == told(router(head, HOMES, seed=seed))


@given(st.integers(0, 2**32), st.integers(50, 300))
@relaxed
def test_a_hot_key_stays_inside_its_home_however_hot(seed: int, arrivals: int) -> None:
    made = router(document(classes=[request_class(queue=QUEUE)]), {"t": home("a-0", "a-2")}, seed=seed)
    rng, open_tickets = Random(seed), []
    for n in range(arrivals):
        decision = made.decide(request("t", f"s{rng.randrange(50)}" if n % 2 else None))
        open_tickets += [decision.ticket] if isinstance(decision, Pick) else []
        if open_tickets and rng.random() < 0.5:
            made.finish(open_tickets.pop(rng.randrange(len(open_tickets))))
        open_tickets += [picked(r.decision).ticket for r in made.release(0.0)]
    assert {ticket.account.slot for ticket in open_tickets} <= {"a-0", "a-2"}
    outcomes = made.measurements().classes["chat"].outcomes
    assert outcomes[Outcome.COLD] + outcomes[Outcome.BACKUP] + outcomes[Outcome.SUBSET] == 0
    for ticket in open_tickets:
        made.finish(ticket)
    while released := made.release(0.0):
        for one in released:
            made.finish(picked(one.decision).ticket)
    state = made.state()
    assert set(state.in_flight.values()) | set(state.reserved.values()) == {0}


@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 10), min_size=2, max_size=4),
    shares=st.lists(st.integers(1, 1000), min_size=4, max_size=4),
)
@settings(deadline=None, max_examples=12)
def test_no_class_starves_under_any_mix(seed: int, sizes: list[int], shares: list[int]) -> None:
    """Each class keeps its queue full; each gets its share of the tokens, within two of the largest requests."""
    names = [f"c{n}" for n in range(len(sizes))]
    classes = [
        request_class(
            name, match={"headers": [{"name": "x-class", "exact": name}]},
            queue={"maxLength": 8, "deadlineMilliseconds": 10**6},
            routes=[{"configuration": "a", "shareMilli": share, "reservationTokens": size * 100}],
        )
        for name, size, share in zip(names, sizes, shares, strict=False)
    ]  # fmt: skip
    made = router(document(classes=classes, slots=[slot("a-0", budgetTokens=1_000)]), seed=seed)
    rng, tokens = Random(seed), Counter[str]()
    running = []

    def top_up() -> None:
        for name in names:
            while True:
                decision = made.decide(request(x_class=name))
                if isinstance(decision, Pick):
                    running.append(decision.ticket)
                elif isinstance(decision, Shed):
                    break

    top_up()
    for _ in range(600):
        made.finish(running.pop(rng.randrange(len(running))))
        for released in made.release(0.0):
            ticket = picked(released.decision).ticket
            tokens[ticket.class_name] += ticket.tokens
            running.append(ticket)
        top_up()
    total, weight = sum(tokens.values()), sum(shares[: len(sizes)])
    for name, share in zip(names, shares, strict=False):
        assert tokens[name] >= total * share / weight - 2 * 1_000


@given(st.integers(1, 1000), st.integers(1, 400))
@relaxed
def test_admission_never_strays_by_more_than_one(admit: int, arrivals: int) -> None:
    head = document(
        classes=[request_class(admitMilli=admit, routes=routes(a=1000))], slots=[slot("a-0", budgetTokens=10**9)]
    )
    made = router(head)
    admitted = sum(isinstance(made.decide(request()), Pick) for _ in range(arrivals))
    assert abs(admitted - arrivals * admit / 1000) <= 1
