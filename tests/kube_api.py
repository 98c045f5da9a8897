"""An API server of a few lines, on loopback: it says what a test tells it to say, in that order.

Inputs: answers. Outputs: a client for them, and the requests that arrived whole.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientError, web

from kvplan_operator.kube.access import Access
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.transport import Transport

Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        body: JSON, or text.
        status: of HTTP.
        headers: beside those of HTTP.
    """

    body: Object | str = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """The lines of a watch, and whether it then goes silent or ends."""

    events: Sequence[Object | bytes] = ()
    silent: bool = False


class Hangs:
    """No answer at all."""


@dataclass(frozen=True)
class Asked:
    """A request that arrived whole."""

    method: str
    path: str
    query: Mapping[str, str]
    content_type: str
    body: Any


def status(code: int, reason: str = "", message: str = "", *causes: Mapping[str, str], **headers: str) -> Answer:
    """A refusal as the API server words it."""
    body = {"kind": "Status", "reason": reason, "message": message, "details": {"causes": list(causes)}}
    return Answer(body, code, {name.replace("_", "-"): value for name, value in headers.items()})


class Api:
    """What arrived, and what is left to say; the last answer is repeated."""

    def __init__(self, answers: Sequence[Answer | Stream | Hangs]) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.over = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Note the request and answer it."""
        try:
            text = await request.text()
        except (ClientError, OSError, web.RequestPayloadError):
            return web.Response(status=400)
        body = json.loads(text) if text else None
        self.asked.append(Asked(request.method, request.path, dict(request.query), request.content_type, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Answer):
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            return web.Response(text=text, status=answer.status, headers=answer.headers)
        return await self._stream(request, answer)

    async def _stream(self, request: web.Request, answer: Stream | Hangs) -> web.StreamResponse:
        if isinstance(answer, Hangs):
            await self.over.wait()
            return web.Response()
        response = web.StreamResponse()
        await response.prepare(request)
        for event in answer.events:
            await response.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        if answer.silent:
            await self.over.wait()
        return response


@asynccontextmanager
async def served(directory: Path, *answers: Answer | Stream | Hangs) -> AsyncIterator[tuple[Client, Api]]:
    """A client, and the server it talks to; both end with the block."""
    api = Api(answers)
    runner = web.ServerRunner(web.Server(api), shutdown_timeout=0.1)  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    client = Client(await Transport.open(Access(kubeconfig(directory, site.name))), rng=lambda: 0.0)
    try:
        yield client, api
    finally:
        api.over.set()
        await client.close()
        await runner.cleanup()


def kubeconfig(directory: Path, server: str) -> Path:
    """A kubeconfig for a server without TLS or user."""
    named = {"clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}]}
    contexts = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    file = directory / "kubeconfig"
    file.write_text(json.dumps({"current-context": "x", "contexts": contexts, **named}))
    return file
