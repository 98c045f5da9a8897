"""What a request body says about its class and key. Standard library only.

In: the bytes of a JSON body as OpenAI-style clients send them. Out: its fields, and the canonical text of its
first bytes. Never raises: what cannot be read counts as absent, and the request falls back to its headers.
Must not: log or keep anything of the body. Source: 05-router §5.

Canonical text: the messages (or the prompt) in order; of each the role, a unit separator (0x1f), its content, and a
record separator (0x1e). Text is UTF-8 with lone surrogates encoded like any other code point; the text parts of
a content list stand one after the other; any other value is JSON with sorted keys and no blanks.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MESSAGE_FIELDS = ("messages", "input", "prompt")
"""Where a body keeps its text: chat, responses, completions."""

_UNIT = b"\x1f"
_RECORD = b"\x1e"


def read_document(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a body; empty where it is none."""
    try:
        document = json.loads(body) if body else {}
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return {}
    return document if isinstance(document, dict) else {}


def text_field(document: Mapping[str, Any], name: str) -> str:
    """A field's text; empty where the field is absent or not text."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def prefix_value(document: Mapping[str, Any], limit: int) -> bytes:
    """What a prefix rule hashes: model, cache salt and the first ``limit`` bytes of the canonical text.

    Model and salt stand with their length, four bytes big-endian, so that nothing can pose as another pair.
    Empty where the body holds no text.
    """
    text = _first_bytes(_canonical(document), limit)
    if not text:
        return b""
    head = (_bytes(text_field(document, name)) for name in ("model", "cache_salt"))
    return b"".join(len(part).to_bytes(4, "big") + part for part in head) + text


def _first_bytes(parts: Iterator[bytes], limit: int) -> bytes:
    taken = bytearray()
    for part in parts:
        taken += part
        if len(taken) >= limit:
            break
    return bytes(taken[:limit])


def _canonical(document: Mapping[str, Any]) -> Iterator[bytes]:
    messages = next((document[name] for name in MESSAGE_FIELDS if document.get(name)), ())
    for message in messages if isinstance(messages, list) else [messages] if messages else []:
        role, content = _parts(message)
        yield role
        yield _UNIT
        yield from _content(content)
        yield _RECORD


def _parts(message: object) -> tuple[bytes, object]:
    """Role and content of a chat message; anything else is content without a role."""
    if isinstance(message, dict):
        return _bytes(text_field(message, "role")), message.get("content", message)
    return b"", message


def _content(content: object) -> Iterator[bytes]:
    for part in content if isinstance(content, list) else (content,):
        text = part.get("text") if isinstance(part, dict) else part
        yield _bytes(text) if isinstance(text, str) else _json(part)


def _json(value: object) -> bytes:
    """A value that came out of JSON, in one spelling. What is too deep to write counts as nothing."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except RecursionError:
        return b""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
