"""Text to tokens and back: a token is four bytes, so that equal heads of text are equal heads of tokens.

A real tokenizer's counts depend on the model; here a text of n UTF-8 bytes has ceil(n/4) tokens, always.
Answers are made of four-letter words that follow from the prompt and the position alone. Pure.
"""

import sys
import zlib
from array import array
from collections.abc import Iterable
from itertools import product
from string import ascii_lowercase

TOKEN_BYTES = 4
_PAD = b"\0"
_WORDS = tuple(
    int.from_bytes(f" {''.join(letters)}".encode(), "little") for letters in product(ascii_lowercase, repeat=3)
)


def tokenize(text: str) -> "array[int]":
    """Tokens of a text."""
    content = text.encode("utf-8", "surrogatepass")
    content += _PAD * (-len(content) % TOKEN_BYTES)
    tokens = array("I")
    tokens.frombytes(content)
    return _little_endian(tokens)


def detokenize(tokens: Iterable[int]) -> str:
    """Text of tokens; bytes that are no text become replacement characters."""
    content = _little_endian(array("I", tokens)).tobytes()
    return content.rstrip(_PAD).decode("utf-8", "replace")


def answer_seed(prompt: "array[int]") -> int:
    """What the answer to a prompt follows from."""
    return zlib.crc32(prompt[-TOKEN_BYTES:].tobytes(), len(prompt))


def answer_token(seed: int, position: int) -> int:
    """Token at ``position`` (from 0) of an answer: a space and three letters."""
    return _WORDS[zlib.crc32(position.to_bytes(8, "little"), seed) % len(_WORDS)]


def _little_endian(tokens: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens
