"""Answers as vLLM writes them: one JSON object, or chunks of a stream. Pure."""

import json
from array import array
from dataclasses import dataclass
from typing import Any

from kvplan_engine.core.request import FinishReason, Request
from kvplan_engine.core.text import detokenize
from kvplan_engine.protocol.call import Call

END_OF_STREAM = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Writer:
    """Writes the answer to one call.

    Attributes:
        call: what was asked.
        answer_id: the answer's ``id``.
        created: seconds since 1970.
        tell_cached: whether the usage has the cached prompt tokens.
    """

    call: Call
    answer_id: str
    created: int
    tell_cached: bool

    def whole(self, request: Request, reason: FinishReason) -> dict[str, Any]:
        """The answer in one piece."""
        text = detokenize(request.tokens[len(request.prompt) :])
        content = {"message": {"role": "assistant", "content": text}} if self.call.chat else {"text": text}
        kind = "chat.completion" if self.call.chat else "text_completion"
        return self._object(kind, [self._choice(content, reason)]) | {"usage": self.usage(request)}

    def opening(self) -> bytes:
        """What a stream starts with: the role, in a chat."""
        return (
            self._chunk([self._choice({"delta": {"role": "assistant", "content": ""}}, None)])
            if self.call.chat
            else b""
        )

    def token(self, token: int, reason: FinishReason | None) -> bytes:
        """One token of a stream; the last one has the reason."""
        text = detokenize(array("I", [token]))
        content = {"delta": {"content": text}} if self.call.chat else {"text": text}
        return self._chunk([self._choice(content, reason)])

    def closing(self, request: Request) -> bytes:
        """The usage of a stream, in a chunk of its own."""
        return _event(self._object(self._chunk_kind, []) | {"usage": self.usage(request)})

    def usage(self, request: Request) -> dict[str, Any]:
        """Tokens of a request so far."""
        prompt, generated = len(request.prompt), request.generated
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + generated,
            "completion_tokens": generated,
        }
        if self.tell_cached:
            usage["prompt_tokens_details"] = {"cached_tokens": request.cached_tokens}
        return usage

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self.call.chat else "text_completion"

    def _chunk(self, choices: list[dict[str, Any]]) -> bytes:
        return _event(self._object(self._chunk_kind, choices))

    def _object(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.answer_id,
            "object": kind,
            "created": self.created,
            "model": self.call.model,
            "choices": choices,
        }

    def _choice(self, content: dict[str, Any], reason: FinishReason | None) -> dict[str, Any]:
        return {"index": 0, **content, "logprobs": None, "finish_reason": reason, "stop_reason": None}


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"
