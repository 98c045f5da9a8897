"""A completion or chat request, read from its JSON body.

Inputs: the body's bytes, the names the model is served under, the longest length in tokens. Output: a Call,
everything checked. Raises BadRequest or NotFound with vLLM's status codes. Pure.
"""

import json
from array import array
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kvplan_engine.core.text import tokenize
from kvplan_engine.protocol.errors import BadRequest, NotFound
from kvplan_engine.protocol.fields import boolean, integer, text

COMPLETION_MAX_TOKENS = 16
"""``max_tokens`` of a completion that names none."""
_BIGGEST_TOKEN = 2**32 - 1


@dataclass(frozen=True)
class Call:
    """One request of a client.

    Attributes:
        chat: whether it came as chat.
        model: the name the client used.
        prompt: prompt tokens.
        max_tokens: cap on the answer, tokens, at least 1.
        ignore_eos: whether the answer goes on to that cap whatever happens.
        stream: whether tokens are sent as they come.
        include_usage: whether a stream ends with the usage.
        cache_salt: prefix cache partition.
        priority: lower is served earlier.
        seed: of the answer's length; None leaves it to the request's identity.
    """

    chat: bool
    model: str
    prompt: "array[int]"
    max_tokens: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    cache_salt: str
    priority: int
    seed: int | None


def read_call(body: bytes, *, chat: bool, models: Collection[str], max_model_len: int) -> Call:
    """Read and check a request.

    Raises:
        BadRequest: no JSON object, a field of the wrong type, or more tokens than ``max_model_len``.
        NotFound: the model is not served here.
    """
    fields = _json_object(body)
    model = _model(fields, models)
    prompt = _chat_prompt(fields) if chat else _completion_prompt(fields)
    stream = boolean(fields, "stream")
    return Call(
        chat=chat,
        model=model,
        prompt=prompt,
        max_tokens=_max_tokens(fields, len(prompt), max_model_len, chat=chat),
        ignore_eos=boolean(fields, "ignore_eos"),
        stream=stream,
        include_usage=_include_usage(fields, stream=stream),
        cache_salt=_cache_salt(fields),
        priority=integer(fields, "priority") or 0,
        seed=integer(fields, "seed"),
    )


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as why:
        raise BadRequest(f"The body is not valid JSON: {why}") from None
    if not isinstance(fields, dict):
        raise BadRequest("The body must be a JSON object.")
    if integer(fields, "n") not in {None, 1}:
        raise BadRequest("This stand-in makes one answer per request: n must be 1.", "n")
    return fields


def _model(fields: dict[str, Any], models: Collection[str]) -> str:
    """A request that names no model means the only one there is."""
    model = text(fields, "model")
    if model is None:
        return next(iter(models))
    if model not in models:
        raise NotFound(f"The model `{model}` does not exist.", "model")
    return model


def _completion_prompt(fields: dict[str, Any]) -> "array[int]":
    prompt = fields.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    tokens = _tokens(prompt)
    if not tokens:
        raise BadRequest("prompt must not be empty.", "prompt")
    return tokens


def _tokens(prompt: Any) -> "array[int]":
    if isinstance(prompt, str):
        return tokenize(prompt)
    if isinstance(prompt, list) and all(type(token) is int and 0 <= token <= _BIGGEST_TOKEN for token in prompt):
        return array("I", prompt)
    raise BadRequest("prompt must be one text or one list of token ids.", "prompt")


def _chat_prompt(fields: dict[str, Any]) -> "array[int]":
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list of at least one message.", "messages")
    return tokenize("".join(map(_message_text, messages)) + "<|assistant|>")


def _message_text(message: Any) -> str:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadRequest("each message must be an object with a role.", "messages")
    return f"<|{message['role']}|>{_content_text(message.get('content'))}\n"


def _content_text(content: Any) -> str:
    """Text of a message; what is no text counts by its JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    raise BadRequest("content must be a text or a list of parts.", "messages")


def _part_text(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return json.dumps(part, sort_keys=True)


def _max_tokens(fields: dict[str, Any], prompt_tokens: int, max_model_len: int, *, chat: bool) -> int:
    """Cap on the answer; a chat that names none may use all that is left."""
    room = max_model_len - prompt_tokens
    asked = integer(fields, "max_completion_tokens") if chat else None
    asked = integer(fields, "max_tokens") if asked is None else asked
    if asked is None:
        asked = max(1, room) if chat else COMPLETION_MAX_TOKENS
    if asked < 1:
        raise BadRequest(f"max_tokens must be at least 1, got {asked}.", "max_tokens")
    if asked > room:
        raise BadRequest(
            f"This model's maximum context length is {max_model_len} tokens. However, you requested {asked} output "
            f"tokens and your prompt contains {prompt_tokens} input tokens. Shorten one of them.",
            "max_tokens",
        )
    return asked


def _include_usage(fields: dict[str, Any], *, stream: bool) -> bool:
    options = fields.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise BadRequest("stream_options must be an object.", "stream_options")
    if not stream:
        raise BadRequest("Stream options can only be defined when `stream=True`.", "stream_options")
    return boolean(options, "include_usage")


def _cache_salt(fields: dict[str, Any]) -> str:
    salt = text(fields, "cache_salt")
    if salt == "":
        raise BadRequest("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt")
    return salt or ""
