"""POST /v1/completions and /v1/chat/completions: one answer, whole or as a stream of server-sent events."""

import time
import uuid

from aiohttp import web

from kvplan_engine.engine import Answer
from kvplan_engine.protocol.answer import END_OF_STREAM, Writer
from kvplan_engine.protocol.call import Call, read_call
from kvplan_engine.protocol.identity import completion_id
from kvplan_engine.server.desk import Desk
from kvplan_engine.settings import Settings


class Generator:
    """Answers calls.

    Args:
        settings: of the server.
        desk: takes the calls.
    """

    def __init__(self, settings: Settings, desk: Desk) -> None:
        self._settings = settings
        self._flags = settings.flags
        self._desk = desk

    async def completions(self, http: web.Request) -> web.StreamResponse:
        """Answer a completion."""
        return await self._answer(http, chat=False)

    async def chat(self, http: web.Request) -> web.StreamResponse:
        """Answer a chat."""
        return await self._answer(http, chat=True)

    async def _answer(self, http: web.Request, *, chat: bool) -> web.StreamResponse:
        length = self._settings.cache.max_model_len
        with self._desk.serving():
            body = await http.read()
            call = read_call(body, chat=chat, models=self._settings.model_names, max_model_len=length)
            request_id = http.headers.get("x-request-id") or uuid.uuid4().hex
            return await self._serve(http, call, request_id)

    async def _serve(self, http: web.Request, call: Call, request_id: str) -> web.StreamResponse:
        answer = self._desk.accept(call, request_id)
        writer = self._writer(call, request_id)
        headers = {"X-Request-Id": request_id} if self._flags.enable_request_id_headers else {}
        try:
            if call.stream:
                return await self._stream(http, answer, writer, headers)
            return await _whole(answer, writer, headers)
        finally:
            self._desk.leave(answer)

    def _writer(self, call: Call, request_id: str) -> Writer:
        tell_cached = self._flags.enable_prompt_tokens_details
        return Writer(call, completion_id(call, request_id), int(time.time()), tell_cached)

    async def _stream(
        self, http: web.Request, answer: Answer, writer: Writer, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers | {"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(http)  # like vLLM: the status is sent before the first token is there
        request = answer.request
        for remaining in range(request.output_tokens - 1, -1, -1):
            token = await answer.fresh.get()
            if remaining == request.output_tokens - 1:
                await response.write(writer.opening())
            await response.write(writer.token(token, None if remaining else request.finish_reason))
        if writer.call.include_usage or self._flags.enable_force_include_usage:
            await response.write(writer.closing(request))
        await response.write(END_OF_STREAM)
        await response.write_eof()
        return response


async def _whole(answer: Answer, writer: Writer, headers: dict[str, str]) -> web.Response:
    for _ in range(answer.request.output_tokens):
        await answer.fresh.get()
    return web.json_response(writer.whole(answer.request, answer.request.finish_reason), headers=headers)
