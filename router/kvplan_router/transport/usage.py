"""The token counts that an engine writes at the end of its answer, from the last bytes of a response body.

In: the pieces of a response body, plain JSON or server-sent events. Out: prompt and output tokens, or None. Must not
keep more than the tail, nor any text of the answer after :meth:`UsageTail.result`. Source: 05-router §6.
"""

import re

from kvplan_router.core.values import Usage

TAIL_BYTES = 4096
"""An engine's ``usage`` object is a few hundred bytes, and little follows it."""

# Quotes inside an answer's text are escaped, so that a text cannot imitate the object.
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_PROMPT = re.compile(rb'"prompt_tokens"\s*:\s*(\d{1,9})\b')
_OUTPUT = re.compile(rb'"completion_tokens"\s*:\s*(\d{1,9})\b')


class UsageTail:
    """Keeps the last bytes of one response."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self._tail = (self._tail + data)[-TAIL_BYTES:]

    def result(self) -> Usage | None:
        """The last ``usage`` object, or None where the answer carries none (or is compressed)."""
        last = None
        for last in _USAGE.finditer(self._tail):  # noqa: B007 - the last one is wanted
            pass
        if last is None:
            return None
        prompt, output = (pattern.search(self._tail, last.end()) for pattern in (_PROMPT, _OUTPUT))
        return Usage(int(prompt[1]), int(output[1])) if prompt and output else None
