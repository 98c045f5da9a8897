"""Both transports say the same, message for message, whatever a gateway sends: the native one against the specified."""

import asyncio
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from envoy.config.core.v3.base_pb2 import HeaderMap, HeaderValue, Metadata
from envoy.service.ext_proc.v3 import external_processor_pb2 as ext_proc
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as ext_proc_grpc
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_router.core.values import Decision, NeedBody, Outcome, PassThrough, Pick, Released, Request, Shed, Wait
from kvplan_router.transport.aio import AioTransport, Listener
from kvplan_router.transport.exchange_state import ExchangeRules
from kvplan_router.transport.interface import Transport
from kvplan_router.transport.messages import InFlightMode
from kvplan_router.transport.names import LB_NAMESPACE, SERVED, SUBSET, SUBSET_NAMESPACE

pytest.importorskip("kvplan_router_native", reason="the extension is not built")
from kvplan_router.transport.native import NativeListener, NativeTransport

NOW = 100.0
CAP = 24


@dataclass(eq=False)
class Told:
    """A ticket that remembers what a decider was told of it."""

    events: list[object] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class Repeater:
    """A decider whose answer shows everything it was asked with; the header ``kind`` says which answer."""

    def __init__(self) -> None:
        self.tickets: list[Told] = []
        self._waiting: dict[int, tuple[Told, Request]] = {}
        self._lock = threading.Lock()

    def decide(self, request: Request) -> Decision:
        kind = request.headers.get("kind", "pick")
        if request.body is None and "body" in kind:
            return NeedBody()
        ticket = Told()
        self.tickets.append(ticket)
        if "wait" in kind:
            with self._lock:
                self._waiting[id(ticket)] = ticket, request
            return Wait(ticket, NOW + 0.004)
        return _final(kind, ticket, request)

    def served(self, ticket: Any, address: str) -> None:
        ticket.events.append(address)

    def finish(self, ticket: Any, usage: object = None, now: float | None = None) -> bool:
        ticket.events.append(("finished", usage, now))
        ticket.over.set()
        return True

    def abandon(self, ticket: Any, now: float) -> bool:
        ticket.events.append(("abandoned", now))
        ticket.over.set()
        return True

    def release(self, now: float) -> Iterable[Released]:
        assert now == NOW
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return [Released(t, _final(r.headers["kind"], t, r)) for t, r in waiting.values()]  # type: ignore[arg-type]


def _final(kind: str, ticket: Told, request: Request) -> Pick | Shed | PassThrough:
    seen = json.dumps([sorted(request.headers.items()), None if request.body is None else list(request.body),
                       request.subset, request.now, len(request.headers), "kind" in request.headers])  # fmt: skip
    if "shed" in kind:
        ticket.over.set()
        return Shed(429 if "later" in kind else 503, 7 if "later" in kind else 0, seen)
    if "pass" in kind:
        return PassThrough({"x-seen": seen}, ticket)  # type: ignore[arg-type]
    headers = {"x-gateway-destination-endpoint": "?", "x-seen": seen} if "own" in kind else {"x-seen": seen}
    return Pick(("10.0.0.1:80", "10.0.0.2:80"), headers, Outcome.COLD, ticket)  # type: ignore[arg-type]


class Side:
    """One transport with its decider, and a client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, mode: InFlightMode, native: bool) -> None:
        self.decider, self.sampled, self._loop = Repeater(), False, loop
        rules = ExchangeRules(mode, CAP, lambda: self.sampled)
        self.transport: Transport = (
            NativeTransport(self.decider, NativeListener("127.0.0.1:0"), rules, lambda: NOW)
            if native
            else AioTransport(self.decider, Listener("127.0.0.1:0"), rules, lambda: NOW)
        )
        self.run(self.transport.start())
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self.transport.port}")
        self._ask = ext_proc_grpc.ExternalProcessorStub(self._channel).Process

    def run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        self._channel.close()
        self.run(self.transport.stop())

    def converse(self, messages: Sequence[ext_proc.ProcessingRequest]) -> tuple[list[object], list[object]]:
        """Replies, and what the decider was told."""
        self.decider.tickets.clear()
        replies = list(self._ask(iter(messages), timeout=10))
        for ticket in self.decider.tickets:
            assert ticket.over.wait(10)
        return replies, [ticket.events for ticket in self.decider.tickets]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


@pytest.fixture(scope="module", params=list(InFlightMode))
def sides(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[tuple[Side, Side]]:
    both = Side(loop, request.param, native=False), Side(loop, request.param, native=True)
    yield both
    for side in both:
        side.close()


FINAL = ("pick", "pick own", "pass", "shed", "shed later")
KINDS = [f"{before}{kind}" for kind in FINAL for before in ("", "body ", "wait ", "body wait ")]
NAMES = st.sampled_from(["a", "B", "x-É", "a", SUBSET, SERVED, "kind2"])
VALUES = st.one_of(
    st.builds(lambda text: {"value": text}, st.sampled_from(["", "1", "10.0.0.1:80, 10.0.0.2", "é"])),
    st.builds(lambda data: {"raw_value": data}, st.one_of(st.binary(max_size=6), st.just(b"10.0.0.2:80"))),
)
HEADERS = st.lists(st.builds(lambda name, value: HeaderValue(key=name, **value), NAMES, VALUES), max_size=5)
HINTS = st.one_of(
    st.builds(lambda text: Value(string_value=text), st.sampled_from(["", "a, b,,", "10.0.0.2:80", "10.0.0.1:80"])),
    st.builds(lambda texts: Value(list_value=ListValue(values=[Value(string_value=t) for t in texts])),
              st.lists(st.sampled_from(["", "a", "b,c"]), max_size=3)),
    st.just(Value(number_value=7)),
)  # fmt: skip
CONTEXTS = st.builds(
    lambda namespaces: Metadata(filter_metadata=namespaces),
    st.fixed_dictionaries(
        {},
        optional={
            SUBSET_NAMESPACE: st.builds(lambda hint: Struct(fields={SUBSET: hint}), HINTS),
            LB_NAMESPACE: st.builds(lambda hint: Struct(fields={SERVED: hint}), HINTS),
        },
    ),
)


def head(kind: str, headers: Sequence[HeaderValue], end: bool, modes: Mapping[str, Any]) -> ext_proc.ProcessingRequest:
    listed = [HeaderValue(key="kind", value=kind), *headers]
    request = ext_proc.HttpHeaders(headers=HeaderMap(headers=listed), end_of_stream=end)
    return ext_proc.ProcessingRequest(request_headers=request, protocol_config=ext_proc.ProtocolConfiguration(**modes))


HEADS = st.builds(
    head,
    st.sampled_from(KINDS),
    HEADERS,
    st.booleans(),
    st.fixed_dictionaries(
        {
            "request_body_mode": st.integers(0, 6),
            "response_body_mode": st.integers(0, 6),
            "send_body_without_waiting_for_header_response": st.booleans(),
        }
    ),
)
USAGE = b'{"usage": {"prompt_tokens": 3, "completion_tokens": 4}}'
BODIES = st.builds(
    lambda data, end: ext_proc.HttpBody(body=data, end_of_stream=end),
    st.one_of(st.binary(max_size=12), st.just(USAGE), st.just(b"x" * 5000)),
    st.booleans(),
)
LATER = st.one_of(
    st.builds(lambda body: ext_proc.ProcessingRequest(request_body=body), BODIES),
    st.builds(lambda body: ext_proc.ProcessingRequest(response_body=body), BODIES),
    st.builds(
        lambda headers: ext_proc.ProcessingRequest(
            response_headers=ext_proc.HttpHeaders(headers=HeaderMap(headers=headers))
        ),
        HEADERS,
    ),
    st.just(ext_proc.ProcessingRequest(request_trailers=ext_proc.HttpTrailers())),
    st.just(ext_proc.ProcessingRequest(response_trailers=ext_proc.HttpTrailers())),
    st.just(ext_proc.ProcessingRequest()),
    HEADS,
)


def in_context(message: ext_proc.ProcessingRequest, context: Metadata) -> ext_proc.ProcessingRequest:
    placed = ext_proc.ProcessingRequest()
    placed.CopyFrom(message)
    placed.metadata_context.CopyFrom(context)
    return placed


CONVERSATIONS = st.builds(
    lambda first, later: [first, *later],
    st.builds(in_context, HEADS, CONTEXTS),
    st.lists(st.builds(in_context, LATER, CONTEXTS), max_size=8),
)


@settings(max_examples=60, deadline=None)
@given(conversation=CONVERSATIONS, sampled=st.booleans())
def test_any_conversation_gets_the_same_replies_and_tells_the_decider_the_same(
    sides: tuple[Side, Side], conversation: list[ext_proc.ProcessingRequest], sampled: bool
) -> None:
    specified, native = sides
    specified.sampled = native.sampled = sampled
    assert native.converse(conversation) == specified.converse(conversation)
