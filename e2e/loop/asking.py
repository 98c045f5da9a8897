"""One request as a client sends it, and how it ended as the client sees it.

Inputs: what to ask and of whom. Outputs: an ``Ended``. An answer counts only if it is whole: the status, every token
that was asked for, and the end that its form promises (a complete JSON object, or `data: [DONE]`).
"""

import asyncio
import json
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

PATH = "/v1/completions"
CLASS_HEADER = "x-request-class"
KEY_HEADER = "x-tenant-id"
TOKEN_BYTES = 4
"""Of the engine stand-in: a token is four letters."""
PATIENCE = ClientTimeout(total=None, sock_connect=5.0, sock_read=60.0)
_OK, _TOO_MANY, _NO_ANSWER = 200, 429, -1


class End(StrEnum):
    """How a request ended."""

    WHOLE = "whole"
    SHED = "shed"
    FAILED = "failed"
    TRUNCATED = "truncated"


@dataclass(frozen=True)
class Asked:
    """What is asked.

    Attributes:
        request_class: value of the header that names the class.
        prompt: text.
        output_tokens: tokens of the answer, exactly.
        key: whose prefix it is; empty for nobody's.
        stream: whether the answer comes in pieces.
        text_tells: whether the answer's text tells how many tokens it has; a real tokenizer's does not.
    """

    request_class: str
    prompt: str
    output_tokens: int
    key: str = ""
    stream: bool = False
    text_tells: bool = True

    def body(self, model: str) -> bytes:
        """The JSON document."""
        content = {"model": model, "prompt": self.prompt, "max_tokens": self.output_tokens, "ignore_eos": True}
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if self.stream else {}
        return json.dumps(content | streamed).encode()

    def headers(self) -> dict[str, str]:
        """Its headers."""
        own = {CLASS_HEADER: self.request_class, "content-type": "application/json"}
        return own | ({KEY_HEADER: self.key} if self.key else {})


@dataclass(frozen=True)
class Ended:
    """How it ended.

    Attributes:
        asked: the request.
        end: in a word.
        began: on the monotonic clock, seconds.
        seconds: until the end.
        first_seconds: until the first byte of the body; None where none came.
        detail: what was wrong; empty where nothing was.
    """

    asked: Asked
    end: End
    began: float
    seconds: float
    first_seconds: float | None = None
    detail: str = ""


async def ask(session: ClientSession, gateway: str, asked: Asked, model: str) -> Ended:
    """Send one request and read its answer to the end.

    Args:
        session: of the client.
        gateway: URL of an Envoy.
        asked: the request.
        model: name of the model.
    """
    watch = _Watch()
    try:
        data, headers = asked.body(model), asked.headers()
        async with session.post(gateway + PATH, data=data, headers=headers, timeout=PATIENCE) as response:
            body = await watch.read(response)
            end, detail = judged(asked, response.status, body)
    except (ClientError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
        cut = End.TRUNCATED if watch.first_seconds is not None else End.FAILED
        end, detail = cut, f"{gateway}: {type(error).__name__}: {error}"
    return Ended(asked, end, watch.began, time.monotonic() - watch.began, watch.first_seconds, detail)


def judged(asked: Asked, status: int, body: bytes) -> tuple[End, str]:
    """How an answer that arrived is to be counted, and what was wrong with it."""
    if status == _TOO_MANY:
        return End.SHED, body[:200].decode(errors="replace")
    if status != _OK:
        return End.FAILED, f"status {status}: {body[:200].decode(errors='replace')}"
    stated, in_text = _streamed_tokens(body) if asked.stream else _whole_tokens(body)
    tokens = stated if stated == in_text or not asked.text_tells else _NO_ANSWER
    if tokens == asked.output_tokens:
        return End.WHOLE, ""
    return End.TRUNCATED, f"{tokens} of {asked.output_tokens} tokens in {len(body)} bytes"


def _whole_tokens(body: bytes) -> tuple[int, float]:
    """Tokens of an answer in one piece, as the engine states them and as its text has them."""
    try:
        document = json.loads(body)
        text: str = document["choices"][0]["text"]
        return int(document["usage"]["completion_tokens"]), len(text.encode()) / TOKEN_BYTES
    except (ValueError, LookupError, TypeError):
        return _NO_ANSWER, _NO_ANSWER


def _streamed_tokens(body: bytes) -> tuple[int, float]:
    """The same of a stream, whose text comes a token at a time; a stream without its end has neither."""
    events = body.split(b"\n\n")
    if events[-2:] != [b"data: [DONE]", b""]:
        return _NO_ANSWER, _NO_ANSWER
    try:
        chunks: list[dict[str, Any]] = [json.loads(event.removeprefix(b"data: ")) for event in events[:-2]]
        tokens = sum(bool(chunk["choices"] and chunk["choices"][0]["text"]) for chunk in chunks)
        stated = [int(chunk["usage"]["completion_tokens"]) for chunk in chunks if chunk.get("usage")]
        return stated[-1], tokens  # every piece may carry the count so far
    except (ValueError, LookupError, TypeError):
        return _NO_ANSWER, _NO_ANSWER


class _Watch:
    """A stopwatch that notes the first byte."""

    def __init__(self) -> None:
        self.began, self.first_seconds = time.monotonic(), None

    first_seconds: float | None

    async def read(self, response: ClientResponse) -> bytes:
        """The body."""
        parts: list[bytes] = []
        async for part in response.content.iter_any():
            if self.first_seconds is None:
                self.first_seconds = time.monotonic() - self.began
            parts.append(part)
        return b"".join(parts)
