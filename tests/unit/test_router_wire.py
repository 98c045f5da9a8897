"""Envoy's protobuf messages to plain values and back, and the token counts at the end of an answer."""

import base64
from typing import Any

import pytest
from envoy.service.ext_proc.v3 import external_processor_pb2 as ext_proc
from google.protobuf.json_format import MessageToDict, ParseDict

from kvplan_router.core.values import Usage
from kvplan_router.transport import wire
from kvplan_router.transport.messages import (
    Body,
    BodyMode,
    Continue,
    Echo,
    Modes,
    Phase,
    Refuse,
    RequestHeaders,
    ResponseHeaders,
    Route,
    Trailers,
)
from kvplan_router.transport.usage import TAIL_BYTES, UsageTail

SUBSET = "x-gateway-destination-endpoint-subset"
SERVED = "x-gateway-destination-endpoint-served"


def message(document: dict[str, Any]) -> Any:
    return wire.read_message(ParseDict(document, ext_proc.ProcessingRequest()))


def raw(text: bytes) -> str:
    return base64.b64encode(text).decode()


def head(*headers: dict[str, str], **fields: Any) -> Any:
    return message({"request_headers": {"headers": {"headers": list(headers)}}, **fields})


def test_header_values_come_raw_or_as_text_and_names_in_lower_case() -> None:
    got = head({"key": "X-A", "raw_value": raw(b"raw")}, {"key": "x-b", "value": "text"})
    assert got == RequestHeaders({"x-a": "raw", "x-b": "text"})


def test_values_of_one_name_are_joined_and_bytes_that_are_no_text_are_replaced() -> None:
    got = head({"key": "a", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b", "raw_value": raw(b"\xff")})
    assert got.headers == {"a": "1,2", "b": "\ufffd"}


@pytest.mark.parametrize(
    ("config", "modes"),
    [
        ({}, Modes()),
        ({"request_body_mode": "BUFFERED"}, Modes(BodyMode.BUFFERED)),
        ({"request_body_mode": "BUFFERED_PARTIAL"}, Modes(BodyMode.BUFFERED)),
        (
            {"request_body_mode": "STREAMED", "send_body_without_waiting_for_header_response": True},
            Modes(BodyMode.STREAMED, body_before_reply=True),
        ),
        (
            {"request_body_mode": "FULL_DUPLEX_STREAMED", "response_body_mode": "FULL_DUPLEX_STREAMED"},
            Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX),
        ),
    ],
    ids=["nothing said", "buffered", "buffered in part", "streamed unasked", "full duplex"],
)
def test_body_modes_are_what_the_first_message_says(config: dict[str, Any], modes: Modes) -> None:
    assert head(protocol_config=config).modes == modes


@pytest.mark.parametrize(
    ("hint", "allowed"),
    [
        (["10.0.0.1:8000", "10.0.0.2"], ("10.0.0.1:8000", "10.0.0.2")),
        ("10.0.0.1:8000, 10.0.0.2", ("10.0.0.1:8000", "10.0.0.2")),
        ("", ()),
        ([], ()),
        (7, ()),
    ],
    ids=["a list", "a text", "empty text", "empty list", "neither"],
)
def test_a_subset_hint_is_a_list_or_a_text(hint: Any, allowed: tuple[str, ...]) -> None:
    context = {"filter_metadata": {"envoy.lb.subset_hint": {SUBSET: hint}}}
    assert head(metadata_context=context).subset == allowed


def test_a_subset_hint_may_be_a_header_and_no_hint_is_none() -> None:
    assert head({"key": SUBSET, "value": "10.0.0.1"}).subset == ("10.0.0.1",)
    assert head().subset is None


def test_who_served_is_in_metadata_or_in_a_header() -> None:
    context = {"filter_metadata": {"envoy.lb": {SERVED: "10.0.0.1:8000"}}}
    assert message({"response_headers": {}, "metadata_context": context}) == ResponseHeaders("10.0.0.1:8000")
    header = {"headers": {"headers": [{"key": SERVED, "value": "10.0.0.2:8000"}]}}
    assert message({"response_headers": header}) == ResponseHeaders("10.0.0.2:8000")
    trailers = message({"response_trailers": {}, "metadata_context": context})
    assert trailers == Trailers(Phase.RESPONSE_TRAILERS, "10.0.0.1:8000")


def test_bodies_and_request_trailers_are_read_and_an_empty_message_asks_nothing() -> None:
    assert message({"request_body": {"body": raw(b"x"), "end_of_stream": True}}) == Body(Phase.REQUEST_BODY, b"x", True)
    assert message({"response_body": {"body": raw(b"y")}}) == Body(Phase.RESPONSE_BODY, b"y")
    assert message({"request_trailers": {}}) == Trailers(Phase.REQUEST_TRAILERS)
    assert message({}) is None


def test_destinations_stand_in_header_and_metadata_and_replace_what_a_client_sent() -> None:
    reply = MessageToDict(
        wire.route(Route(Phase.REQUEST_HEADERS, ("10.0.0.1:80", "10.0.0.2:80"), {"x-request-id": "a"}))
    )
    mutation = reply["requestHeaders"]["response"]["headerMutation"]["setHeaders"]
    assert {(h["header"]["key"], h["header"]["rawValue"], h["appendAction"]) for h in mutation} == {
        ("x-request-id", raw(b"a"), "OVERWRITE_IF_EXISTS_OR_ADD"),
        ("x-gateway-destination-endpoint", raw(b"10.0.0.1:80,10.0.0.2:80"), "OVERWRITE_IF_EXISTS_OR_ADD"),
    }
    assert reply["dynamicMetadata"] == {"envoy.lb": {"x-gateway-destination-endpoint": "10.0.0.1:80,10.0.0.2:80"}}
    assert "modeOverride" not in reply


def test_without_destinations_nothing_is_said_of_any() -> None:
    assert MessageToDict(wire.route(Route(Phase.REQUEST_BODY, ()))) == {
        "requestBody": {"response": {"headerMutation": {}}}
    }


def test_a_watched_response_is_streamed_here() -> None:
    reply = MessageToDict(wire.route(Route(Phase.REQUEST_HEADERS, ("10.0.0.1:80",), {}, watch_response=True)))
    assert reply["modeOverride"]["responseBodyMode"] == "STREAMED"
    assert reply["modeOverride"]["responseTrailerMode"] == "SEND"


def test_a_refusal_has_a_status_a_time_to_come_back_and_an_error_object() -> None:
    reply = MessageToDict(wire.refuse(Refuse(429, 3, "no room")))["immediateResponse"]
    assert reply["status"] == {"code": "TooManyRequests"}
    assert ("retry-after", raw(b"3")) in [
        (h["header"]["key"], h["header"]["rawValue"]) for h in reply["headers"]["setHeaders"]
    ]
    assert "no room" in str(base64.b64decode(reply["body"]))


def test_plain_replies_echoes_and_more_time() -> None:
    assert [MessageToDict(wire.go_on(Continue(phase))) for phase in Phase] == [
        {name: {}}
        for name in (
            "requestHeaders", "requestBody", "requestTrailers", "responseHeaders", "responseBody", "responseTrailers",
        )
    ]  # fmt: skip
    echoed = wire.echo(Echo(Body(Phase.RESPONSE_BODY, b"abc", True)))
    assert echoed.response_body.response.body_mutation.streamed_response.body == b"abc"
    assert MessageToDict(wire.more_time(1.5)) == {"overrideMessageTimeout": "1.500s"}
    assert MessageToDict(wire.more_time(-1)) == {"overrideMessageTimeout": "0.001s"}


ANSWER = b'{"choices": [{"text": "%s"}], "usage": {"prompt_tokens": 12, "total_tokens": 20, "completion_tokens": 8}}'


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (ANSWER % b"hello", Usage(12, 8)),
        (b"data: {}\n\n" * 2000 + b"data: " + ANSWER % b"" + b"\n\ndata: [DONE]\n\n", Usage(12, 8)),
        (ANSWER % rb"\"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 1}", Usage(12, 8)),
        (b'{"choices": []}', None),
        (b'{"usage": {"prompt_tokens": "many"}}', None),
        (b"\x1f\x8b\x08 compressed", None),
        (b"", None),
    ],
    ids=["plain", "a long stream", "a text that imitates it", "none", "no numbers", "compressed", "empty"],
)
def test_token_counts_are_read_from_the_end_of_an_answer(body: bytes, usage: Usage | None) -> None:
    tail = UsageTail()
    for start in range(0, len(body), 999):
        tail.feed(body[start : start + 999])
    assert tail.result() == usage
    assert TAIL_BYTES < 10_000
