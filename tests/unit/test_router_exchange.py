"""One ext_proc stream: which reply to which message, in every body mode. The specification of both transports."""

import pytest

from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import NeedBody, Outcome, PassThrough, Pick, Shed, Ticket, Usage, Wait
from kvplan_router.transport.exchange_state import Exchange, ExchangeRules
from kvplan_router.transport.messages import (
    Body,
    BodyMode,
    Continue,
    Echo,
    End,
    Hold,
    InFlightMode,
    Modes,
    Phase,
    Refuse,
    Reply,
    RequestHeaders,
    ResponseHeaders,
    Route,
    Trailers,
)
from tests.router_script import Script

ADDRESSES = ("10.0.0.1:8000", "10.0.0.2:8000")
DUPLEX = Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX)
HEADERS = Modes()
PLAIN = ExchangeRules()
NOW = 12.5


def ticket() -> Ticket:
    return Ticket(SlotAccount("tp1-0"), 100, "chat", NOW)


def pick() -> Pick:
    return Pick(ADDRESSES, {"x-request-id": "a-kvr100"}, Outcome.PLANNED, ticket())


def head(modes: Modes = HEADERS, end: bool = False) -> RequestHeaders:
    return RequestHeaders({":method": "POST"}, end, None, modes)


def piece(data: bytes, end: bool = False) -> Body:
    return Body(Phase.REQUEST_BODY, data, end)


def answer_piece(data: bytes, end: bool = False) -> Body:
    return Body(Phase.RESPONSE_BODY, data, end)


def routed(phase: Phase = Phase.REQUEST_HEADERS, watch: bool = False) -> Route:
    return Route(phase, ADDRESSES, {"x-request-id": "a-kvr100"}, watch)


def exchange(script: Script, rules: ExchangeRules = PLAIN) -> Exchange:
    return Exchange(script, lambda: NOW, rules)


def replies(subject: Exchange, *messages: RequestHeaders | Body | Trailers | ResponseHeaders) -> list[list[Reply]]:
    return [subject.receive(message) for message in messages]


@pytest.mark.parametrize(
    ("modes", "end"),
    [
        (Modes(), False),
        (Modes(BodyMode.BUFFERED), False),
        (Modes(BodyMode.STREAMED), False),
        (DUPLEX, False),
        (DUPLEX, True),
    ],
    ids=["headers only", "buffered", "streamed", "full duplex", "full duplex, GET"],
)
def test_a_decision_from_the_headers_is_answered_at_once_in_every_mode(modes: Modes, end: bool) -> None:
    script = Script([pick()])
    assert exchange(script).receive(head(modes, end)) == [routed()]
    assert script.asked[0].body == (b"" if end else None)
    assert script.asked[0].now == NOW


def test_a_body_key_in_full_duplex_defers_the_reply_and_hands_the_pieces_back_in_order() -> None:
    script = Script([NeedBody(), pick()])
    got = replies(exchange(script), head(DUPLEX), piece(b'{"user":'), piece(b'"a"}', end=True))
    assert got == [[], [], [routed(), Echo(piece(b'{"user":')), Echo(piece(b'"a"}', end=True))]]
    assert script.asked[1].body == b'{"user":"a"}'


def test_a_body_that_ends_with_trailers_is_decided_on_then() -> None:
    script = Script([NeedBody(), pick()])
    got = replies(exchange(script), head(DUPLEX), piece(b"{}"), Trailers(Phase.REQUEST_TRAILERS))
    assert got == [[], [], [routed(), Echo(piece(b"{}")), Continue(Phase.REQUEST_TRAILERS)]]


def test_a_buffered_body_key_is_answered_with_the_body() -> None:
    script = Script([NeedBody(), pick()])
    got = replies(exchange(script), head(Modes(BodyMode.BUFFERED)), piece(b"{}", end=True))
    assert got == [[Continue(Phase.REQUEST_HEADERS)], [routed(Phase.REQUEST_BODY)]]


def test_a_buffered_body_after_a_decision_from_the_headers_goes_on_unchanged() -> None:
    got = replies(exchange(Script([pick()])), head(Modes(BodyMode.BUFFERED)), piece(b"{}", end=True))
    assert got[1] == [Continue(Phase.REQUEST_BODY)]


@pytest.mark.parametrize("modes", [Modes(), Modes(BodyMode.STREAMED)], ids=["headers only", "streamed"])
def test_where_no_body_comes_before_the_reply_a_body_key_is_decided_without(modes: Modes) -> None:
    script = Script([NeedBody(), pick()])
    assert exchange(script).receive(head(modes)) == [routed()]
    assert script.asked[1].body == b""


def test_a_streamed_body_that_comes_unasked_is_waited_for() -> None:
    script = Script([NeedBody(), pick()])
    modes = Modes(BodyMode.STREAMED, body_before_reply=True)
    got = replies(exchange(script), head(modes), piece(b"{"), piece(b"}", end=True))
    assert got == [[], [], [routed(), Continue(Phase.REQUEST_BODY), Continue(Phase.REQUEST_BODY)]]


def test_a_body_over_the_cap_is_passed_on_and_never_refused() -> None:
    script = Script([NeedBody(), pick()])
    subject = exchange(script, ExchangeRules(body_bytes_max=4))
    got = replies(subject, head(DUPLEX), piece(b"123"), piece(b"456"), piece(b"789", end=True))
    assert got[1:3] == [[], [routed(), Echo(piece(b"123")), Echo(piece(b"456"))]]
    assert got[3] == [Echo(piece(b"789", end=True))]
    assert script.asked[1].body == b""


def test_a_refusal_is_an_immediate_answer_and_drops_what_was_held() -> None:
    script = Script([NeedBody(), Shed(429, 3, "no room")])
    got = replies(exchange(script), head(DUPLEX), piece(b"{}", end=True))
    assert got[1] == [Refuse(429, 3, "no room")]


def test_without_a_plan_the_choice_is_left_to_the_gateway() -> None:
    own = ticket()
    script = Script([PassThrough({"x-request-id": "a"}, own)])
    subject = exchange(script)
    assert subject.receive(head()) == [Route(Phase.REQUEST_HEADERS, (), {"x-request-id": "a"})]
    subject.close()
    assert script.finished == [(own, None)]


def test_a_waiting_request_goes_on_with_what_is_released() -> None:
    script = Script([NeedBody(), Wait("w", NOW + 1)])
    subject = exchange(script)
    replies(subject, head(DUPLEX))
    assert subject.receive(piece(b"{}", end=True)) == [Hold(Wait("w", NOW + 1))]
    assert subject.resume(pick()) == [routed(), Echo(piece(b"{}", end=True))]
    subject.close()
    assert (len(script.finished), script.abandoned) == (1, [])


def test_a_client_that_leaves_while_waiting_is_abandoned_and_holds_nothing() -> None:
    script = Script([Wait("w", NOW + 1)])
    subject = exchange(script)
    subject.receive(head())
    subject.close()
    assert (script.abandoned, script.finished) == ([("w", NOW)], [])


def test_a_request_is_finished_once_however_often_it_is_closed() -> None:
    script = Script([pick()])
    subject = exchange(script)
    subject.receive(head())
    for _ in range(3):
        subject.close()
    assert len(script.finished) == 1
    assert script.ended == [NOW]


def test_who_really_served_is_passed_on_from_headers_and_trailers() -> None:
    script = Script([pick()])
    replies(
        exchange(script),
        head(),
        ResponseHeaders(served=ADDRESSES[1]),
        Trailers(Phase.RESPONSE_TRAILERS, served=ADDRESSES[0]),
    )
    assert [address for _, address in script.served_by] == [ADDRESSES[1], ADDRESSES[0]]


def test_that_the_picked_destination_serves_is_no_news() -> None:
    script = Script([pick()])
    trailers = Trailers(Phase.RESPONSE_TRAILERS, served=ADDRESSES[0])
    replies(exchange(script), head(), ResponseHeaders(served=ADDRESSES[0]), trailers)
    assert script.served_by == []


def test_a_sampled_answer_is_looked_at_and_its_tokens_are_told() -> None:
    script = Script([pick()])
    subject = exchange(script, ExchangeRules(sampled=lambda: True))
    assert subject.receive(head()) == [routed(watch=True)]
    told = b'{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}'
    got = replies(subject, ResponseHeaders(), answer_piece(told[:30]), answer_piece(told[30:], end=True))
    assert got == [[Continue(Phase.RESPONSE_HEADERS)], *[[Continue(Phase.RESPONSE_BODY)]] * 2]
    subject.close()
    assert script.finished[0][1] == Usage(5, 9)


def test_in_full_duplex_every_answer_is_seen_and_echoed() -> None:
    script = Script([pick()])
    subject = exchange(script)
    subject.receive(head(DUPLEX))
    event = answer_piece(b'data: {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}\n\n')
    assert subject.receive(event) == [Echo(event)]
    subject.close()
    assert script.finished[0][1] == Usage(1, 2)


EARLY = ExchangeRules(InFlightMode.EARLY_CLOSE, sampled=lambda: True)


def test_early_close_ends_the_stream_when_the_request_is_through() -> None:
    assert exchange(Script([pick()]), EARLY).receive(head()) == [routed(), End()]
    got = replies(exchange(Script([pick()]), EARLY), head(DUPLEX), piece(b"1"), piece(b"2", end=True))
    assert got == [[routed()], [Echo(piece(b"1"))], [Echo(piece(b"2", end=True)), End()]]


@pytest.mark.parametrize(
    ("modes", "sampled", "may"),
    [(Modes(), False, True), (Modes(), True, False), (Modes(BodyMode.BUFFERED), False, True), (DUPLEX, False, False)],
    ids=["headers only", "sampled", "buffered request", "full duplex"],
)
def test_a_drain_may_close_only_streams_without_which_the_answer_goes_on(
    modes: Modes, sampled: bool, may: bool
) -> None:
    subject = exchange(Script([pick()]), ExchangeRules(sampled=lambda: sampled))
    assert not subject.may_end
    subject.receive(head(modes))
    assert subject.may_end is may
