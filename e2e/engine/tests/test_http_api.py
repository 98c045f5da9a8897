"""The API as a client, a router and an operator see it, over loopback."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from e2e.engine.tests.serving import FAST, SMALL, Client, engine
from kvplan_engine.protocol.identity import reservation_of

Ask = Callable[[Client], Awaitable[Any]]


def _with_engine(ask: Ask, *flags: str) -> Any:
    async def scenario() -> Any:
        async with engine(*FAST, *flags) as client:
            return await ask(client)

    return asyncio.run(scenario())


def test_a_completion_has_the_asked_length_and_says_what_it_used() -> None:
    answer = _with_engine(lambda c: c.complete(prompt=[1] * 22, max_tokens=40, ignore_eos=True))
    assert answer["usage"] == {"prompt_tokens": 22, "completion_tokens": 40, "total_tokens": 62}
    assert answer["choices"][0]["finish_reason"] == "length"
    assert len(answer["choices"][0]["text"].split()) == 40


def test_an_answer_may_end_by_itself() -> None:
    flags = ("--stand-in-answer-tokens", "5", "--stand-in-answer-sigma", "0")
    answer = _with_engine(lambda c: c.complete(prompt="hello", max_tokens=40), *flags)
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_a_stream_sends_every_token_and_no_usage_unless_asked() -> None:
    events = _with_engine(lambda c: c.events("/v1/completions", prompt="hi", max_tokens=3, ignore_eos=True))
    assert [event["choices"][0]["finish_reason"] for event in events] == [None, None, "length"]
    assert not any("usage" in event for event in events)


@pytest.mark.parametrize(
    ("flags", "body"),
    [((), {"stream_options": {"include_usage": True}}), (("--enable-force-include-usage",), {})],
    ids=["asked for by the client", "forced by the flag"],
)
def test_a_stream_ends_with_the_usage(flags: tuple[str, ...], body: dict[str, Any]) -> None:
    events = _with_engine(
        lambda c: c.events("/v1/completions", prompt="hi", max_tokens=3, ignore_eos=True, **body), *flags
    )
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}


def test_a_chat_stream_opens_with_the_role() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    events = _with_engine(lambda c: c.events("/v1/chat/completions", messages=messages, max_tokens=2, ignore_eos=True))
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert len("".join(delta["content"] for delta in deltas).split()) == 2


def test_a_chat_may_use_all_the_room_that_is_left() -> None:
    body = b'{"messages": [{"role": "user", "content": "hi"}], "ignore_eos": true}'
    answer = _with_engine(lambda c: c.post("/v1/chat/completions", body, 200), *SMALL)
    assert answer["usage"]["total_tokens"] == 512
    assert answer["choices"][0]["message"]["role"] == "assistant"


def test_the_request_id_comes_from_the_header() -> None:
    headers = {"x-request-id": "abc-kvr300"}
    answer = _with_engine(lambda c: c.complete(headers=headers, prompt="hi", max_tokens=1))
    assert answer["id"] == "cmpl-abc-kvr300"


@pytest.mark.parametrize(
    ("request_id", "tokens"),
    [("abc-kvr300", 300), ("-kvr0", 0), ("abc", None), ("abc-kvr", None), ("abc-kvr12x", None), ("a-kvr-5", None)],
)
def test_the_reservation_is_the_suffix_of_the_request_id(request_id: str, tokens: int | None) -> None:
    assert reservation_of(request_id) == tokens


def test_responses_are_counted_by_endpoint_method_and_class_of_status() -> None:
    async def ask(client: Client) -> dict[str, float]:
        await client.complete(prompt="hi", max_tokens=1)
        await client.complete(400)
        await client.post("/nowhere", b"", 404)
        return await client.metrics()

    seen = _with_engine(ask)
    for handler, status in (("/v1/completions", "2xx"), ("/v1/completions", "4xx"), ("none", "4xx")):
        assert seen[f'http_requests_total{{handler="{handler}",method="POST",status="{status}"}}'] == 1


def test_models_version_health_ping_and_load_answer() -> None:
    async def ask(client: Client) -> dict[str, Any]:
        answers = {}
        for path in ("/health", "/ping", "/version", "/load", "/v1/models"):
            async with client.session.get(path) as answer:
                assert answer.status == 200
                answers[path] = await answer.json() if answer.content_type == "application/json" else None
        return answers

    answers = _with_engine(ask, "--served-model-name", "first", "second", *SMALL)
    assert answers["/version"]["version"].startswith("0.32.0")
    assert answers["/load"] == {"server_load": 0}
    assert [(m["id"], m["max_model_len"]) for m in answers["/v1/models"]["data"]] == [("first", 512), ("second", 512)]


def test_load_counts_open_calls_when_tracking_is_on() -> None:
    async def ask(client: Client) -> Any:
        body = {"prompt": "hi", "max_tokens": 500, "ignore_eos": True, "stream": True}
        async with client.session.post("/v1/completions", json=body) as held, client.session.get("/load") as load:
            assert held.status == 200
            return await load.json()

    flags = ("--enable-server-load-tracking", "--stand-in-time-scale", "1")
    assert _with_engine(ask, *flags) == {"server_load": 1}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"prompt": [1] * 500, "max_tokens": 13}, 400, "maximum context length is 512 tokens"),
        ({"prompt": [1] * 512}, 400, "maximum context length"),
        ({"prompt": [1] * 600, "max_tokens": 1}, 400, "your prompt contains 600 input tokens"),
        ({"prompt": "hi", "max_tokens": 0}, 400, "max_tokens must be at least 1"),
        ({"prompt": "hi", "max_tokens": True}, 400, "max_tokens must be an integer"),
        ({"prompt": "hi", "max_tokens": 10**30}, 400, "at most 64 bits"),
        ({"prompt": ""}, 400, "prompt must not be empty"),
        ({"prompt": {"a": 1}}, 400, "one text or one list of token ids"),
        ({"prompt": [1, -1]}, 400, "one text or one list of token ids"),
        ({"prompt": ["a", "b"]}, 400, "one text or one list of token ids"),
        ({}, 400, "one text or one list of token ids"),
        ({"prompt": "hi", "model": "other"}, 404, "The model `other` does not exist."),
        ({"prompt": "hi", "n": 2}, 400, "n must be 1"),
        ({"prompt": "hi", "cache_salt": ""}, 400, "non-empty string"),
        ({"prompt": "hi", "priority": "high"}, 400, "priority must be an integer"),
        ({"prompt": "hi", "stream": "yes"}, 400, "stream must be a boolean"),
        ({"prompt": "hi", "stream_options": {"include_usage": True}}, 400, "when `stream=True`"),
    ],
)
def test_a_bad_request_is_refused_with_what_is_wrong(body: dict[str, Any], status: int, says: str) -> None:
    answer = _with_engine(lambda c: c.complete(status, **body), *SMALL)
    assert says in answer["error"]["message"]
    assert answer["error"]["code"] == status


def test_a_priority_is_accepted_by_a_server_that_ignores_it() -> None:
    assert _with_engine(lambda c: c.complete(prompt="hi", max_tokens=1, priority=-3))["choices"]


def test_an_api_key_guards_v1_alone() -> None:
    async def ask(client: Client) -> list[int]:
        tries = [
            ("/v1/models", None),
            ("/v1/models", "Bearer wrong"),
            ("/v1/models", "Bearer right"),
            ("/health", None),
        ]
        statuses = []
        for path, key in tries:
            async with client.session.get(path, headers={"Authorization": key} if key else {}) as answer:
                statuses.append(answer.status)
        return statuses

    assert _with_engine(ask, "--api-key", "right") == [401, 401, 200, 200]


def test_request_id_headers_come_back_when_asked_for() -> None:
    async def ask(client: Client) -> str | None:
        body = {"prompt": "hi", "max_tokens": 1}
        async with client.session.post("/v1/completions", json=body, headers={"x-request-id": "q7"}) as answer:
            return answer.headers.get("X-Request-Id")

    assert _with_engine(ask) is None
    assert _with_engine(ask, "--enable-request-id-headers") == "q7"
