"""Whatever is sent, the server answers or hangs up, and goes on serving."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.engine.tests.serving import FAST, SMALL, Client, engine
from kvplan_engine.protocol.call import read_call
from kvplan_engine.protocol.errors import Refused

NAMES = (
    "model", "prompt", "messages", "max_tokens", "max_completion_tokens", "ignore_eos", "stream", "stream_options",
    "cache_salt", "priority", "seed", "n", "vllm_xargs",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), JSON), st.booleans())
def test_any_json_object_is_read_or_refused(body: dict[str, object], chat: bool) -> None:
    raw = json.dumps(body).encode()
    with suppress(Refused):
        call = read_call(raw, chat=chat, models=["tiny"], max_model_len=512)
        assert 1 <= call.max_tokens <= 512 - len(call.prompt)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_refused(body: bytes, chat: bool) -> None:
    with pytest.raises(Refused):
        read_call(body, chat=chat, models=["tiny"], max_model_len=512)


def _survives(attack: Callable[[Client], Awaitable[None]], *flags: str) -> None:
    async def scenario() -> None:
        async with engine(*FAST, *SMALL, *flags) as client:
            await attack(client)
            assert (await client.complete(prompt="still there?", max_tokens=1))["choices"]
            await client.until(num_requests_running=0, num_requests_waiting=0, kv_cache_usage_perc=0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b'"text"', b"\xff\xfe", b"[" * 200_000, b'{"a":' * 50_000, b'{"prompt": NaN}',
        b'{"prompt": "\\ud800", "max_tokens": 1e400}', b"9" * 10_000, b'{"prompt": "x", "max_tokens": 1.5}',
        b'{"messages": [{}]}', b'{"messages": [{"role": "user", "content": 5}]}',
    ],
    ids=lambda body: repr(body[:24]),
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_malformed_body_is_answered_with_400(path: str, body: bytes) -> None:
    async def attack(client: Client) -> None:
        assert (await client.post(path, body, 400))["error"]["type"] == "BadRequestError"

    _survives(attack)


def test_a_lone_surrogate_is_text_like_any_other() -> None:
    async def attack(client: Client) -> None:
        await client.post("/v1/completions", b'{"prompt": "\\ud800", "max_tokens": 1, "cache_salt": "\\udfff"}', 200)

    _survives(attack)


def test_a_body_over_the_cap_is_answered_with_413() -> None:
    async def attack(client: Client) -> None:
        answer = await client.post("/v1/completions", b"x" * 300_000, 413)
        assert answer["error"]["code"] == 413

    _survives(attack, "--stand-in-max-body-bytes", "100000")


def test_a_big_prompt_below_the_cap_is_read_and_refused_for_its_length() -> None:
    async def attack(client: Client) -> None:
        answer = await client.complete(400, prompt="x" * 8_000_000)
        assert "2000000 input tokens" in answer["error"]["message"]

    _survives(attack)


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_what_is_no_http_ends_that_connection_alone(raw: bytes) -> None:
    async def attack(client: Client) -> None:
        await _send_and_hang_up(client, raw)

    _survives(attack)


def test_clients_that_leave_at_any_point_of_a_stream_leave_nothing_behind() -> None:
    async def attack(client: Client) -> None:
        draw = random.Random(7)
        body = json.dumps({"prompt": "x" * 400, "max_tokens": 300, "ignore_eos": True, "stream": True}).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        raw = head + body
        cuts = [*(draw.randrange(len(raw)) for _ in range(10)), *([len(raw)] * 20)]
        await asyncio.gather(*(_send_and_hang_up(client, raw[:cut], draw.randrange(4_000)) for cut in cuts))

    _survives(attack)


async def _send_and_hang_up(client: Client, raw: bytes, read: int = 0) -> None:
    url = client.session._base_url
    assert url is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(raw)
    await writer.drain()
    if read:
        await asyncio.wait([asyncio.create_task(reader.read(read))], timeout=0.2)
    writer.transport.abort()
