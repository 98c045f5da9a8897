"""What counts as a whole answer, by the loop's clients."""

import json

import pytest

from e2e.loop.asking import Asked, End, judged

WORDS = "lorem"
WHOLE = Asked("chat", WORDS, 2)
STREAMED = Asked("chat", WORDS, 2, stream=True)
REAL = Asked("chat", WORDS, 2, text_tells=False)
REAL_STREAM = Asked("chat", WORDS, 2, stream=True, text_tells=False)


def whole(text: str = "abcdefgh", tokens: int = 2) -> bytes:
    return json.dumps({"choices": [{"text": text}], "usage": {"completion_tokens": tokens}}).encode()


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"text": text}]}).encode() + b"\n\n"


def counting(tokens: int) -> bytes:
    document = {"choices": [{"text": ""}], "usage": {"completion_tokens": tokens}}
    return b"data: " + json.dumps(document).encode() + b"\n\n"


USAGE = b"data: " + json.dumps({"choices": [], "usage": {"completion_tokens": 2}}).encode() + b"\n\n"
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error": {"message": "the engine died"}}\n\n'

CASES: dict[str, tuple[Asked, int, bytes, End]] = {
    "every token is there": (WHOLE, 200, whole(), End.WHOLE),
    "the engine stopped early": (WHOLE, 200, whole("abcd", 1), End.TRUNCATED),
    "the text is shorter than its count": (WHOLE, 200, whole("abcd"), End.TRUNCATED),
    "the object is cut": (WHOLE, 200, whole()[:-3], End.TRUNCATED),
    "a stream with its end": (STREAMED, 200, event("abcd") + event("efgh") + USAGE + DONE, End.WHOLE),
    "a stream without its end": (STREAMED, 200, event("abcd") + event("efgh") + USAGE, End.TRUNCATED),
    "a stream that lost a token": (STREAMED, 200, event("abcd") + USAGE + DONE, End.TRUNCATED),
    "a stream of nothing": (STREAMED, 200, b"", End.TRUNCATED),
    "a stream with an error in it": (STREAMED, 200, event("abcd") + ERROR + DONE, End.TRUNCATED),
    "a text that tells no count": (REAL, 200, whole("words"), End.WHOLE),
    "a text that tells no count, and too few tokens": (REAL, 200, whole("words", 1), End.TRUNCATED),
    "a stream whose pieces tell no count": (REAL_STREAM, 200, event("words") + USAGE + DONE, End.WHOLE),
    "a stream that counts as it goes": (REAL_STREAM, 200, counting(1) + counting(2) + DONE, End.WHOLE),
    "a stream that counts, and stops": (REAL_STREAM, 200, counting(1) + DONE, End.TRUNCATED),
    "such a stream without its end": (REAL_STREAM, 200, event("words") + USAGE, End.TRUNCATED),
    "such a stream without its count": (REAL_STREAM, 200, event("words") + DONE, End.TRUNCATED),
    "no capacity": (WHOLE, 429, b"{}", End.SHED),
    "no engine": (WHOLE, 503, b"no healthy upstream", End.FAILED),
}


@pytest.mark.parametrize(("asked", "status", "body", "end"), CASES.values(), ids=CASES.keys())
def test_an_answer_is_judged(asked: Asked, status: int, body: bytes, end: End) -> None:
    assert judged(asked, status, body)[0] is end
