"""Whatever a gateway sends, in whatever order: no crash, one decision, every ticket given back once, no byte lost."""

from envoy.service.ext_proc.v3 import external_processor_pb2 as ext_proc
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Decision, NeedBody, Outcome, PassThrough, Pick, Shed, Ticket, Wait
from kvplan_router.transport import wire
from kvplan_router.transport.exchange_state import Exchange, ExchangeRules
from kvplan_router.transport.messages import (
    Body,
    BodyMode,
    Echo,
    Hold,
    InFlightMode,
    Message,
    Modes,
    Phase,
    Refuse,
    RequestHeaders,
    ResponseHeaders,
    Route,
    Trailers,
)
from tests.router_script import Script

MODES = st.builds(Modes, st.sampled_from(BodyMode), st.sampled_from(BodyMode), st.booleans())
BODIES = st.sampled_from([Phase.REQUEST_BODY, Phase.RESPONSE_BODY])
TRAILERS = st.sampled_from([Phase.REQUEST_TRAILERS, Phase.RESPONSE_TRAILERS])
SERVED = st.none() | st.just("10.0.0.1:80")
LATER = st.lists(
    st.one_of(
        st.builds(Body, BODIES, st.binary(max_size=12), st.booleans()),
        st.builds(Trailers, TRAILERS, SERVED),
        st.builds(ResponseHeaders, SERVED),
        st.builds(RequestHeaders, st.just({}), st.booleans(), st.none(), MODES),
    ),
    max_size=12,
)


def final(number: int) -> Decision:
    ticket = Ticket(SlotAccount("a-0"), 1, "chat", 0.0)
    pick = Pick(("10.0.0.1:80",), {}, Outcome.COLD, ticket)
    choices: list[Decision] = [pick, PassThrough({}, ticket), Shed(429, 1, "no"), Wait(ticket, 2.0)]
    return choices[number]


@settings(max_examples=300, deadline=None)
@given(MODES, st.booleans(), LATER, st.integers(0, 3), st.booleans(), st.sampled_from(InFlightMode), st.booleans())
def test_any_order_of_messages_is_survived(
    modes: Modes, end: bool, later: list[Message], kind: int, body_first: bool,
    in_flight: InFlightMode, sampled: bool,
) -> None:  # fmt: skip
    script = Script([*([NeedBody()] if body_first else []), final(kind)])
    exchange = Exchange(script, lambda: 1.0, ExchangeRules(in_flight, 20, lambda: sampled))
    replies = exchange.receive(RequestHeaders({}, end, None, modes))
    for message in later:
        replies += exchange.receive(message)
    if any(isinstance(reply, Hold) for reply in replies):
        replies += exchange.resume(final(0))  # type: ignore[arg-type]
    exchange.close()
    exchange.close()
    assert len(script.asked) <= 2
    assert len(script.finished) <= 1
    assert sum(isinstance(reply, Route | Refuse) for reply in replies) <= 1


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=30), min_size=1, max_size=10), st.booleans())
def test_a_full_duplex_body_comes_back_byte_by_byte(pieces: list[bytes], body_first: bool) -> None:
    script = Script([*([NeedBody()] if body_first else []), final(0)])
    exchange = Exchange(script, lambda: 1.0, ExchangeRules(body_bytes_max=40))
    replies = exchange.receive(RequestHeaders({}, False, None, Modes(BodyMode.FULL_DUPLEX)))
    for number, data in enumerate(pieces):
        replies += exchange.receive(Body(Phase.REQUEST_BODY, data, number == len(pieces) - 1))
    assert isinstance(replies[0], Route)
    assert [reply.body.data for reply in replies if isinstance(reply, Echo)] == pieces


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_bytes_that_happen_to_parse_are_read_without_a_crash(data: bytes) -> None:
    request = ext_proc.ProcessingRequest()
    try:
        request.ParseFromString(data)
    except Exception:
        return
    wire.read_message(request)
