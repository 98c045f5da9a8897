"""Lines of a text file, plain or gzip, with every way in which it can be unreadable named.

Inputs: a path. Output: decoded lines, one at a time, so that a file never has to fit into memory. UTF-8
only (a byte order mark is skipped). It knows nothing of CSV or JSON.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from kvplan_cli.traces.errors import TraceError

MAX_LINE = 1 << 24
"""Characters of the longest line taken: a file without line ends must not fill the memory."""
_GZIP_MAGIC = b"\x1f\x8b"


def suffix_of(path: Path) -> str:
    """The format suffix in lower case, without a trailing ``.gz``: ``.csv`` for ``a.csv.gz``."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain.suffix.lower()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The (decompressed) bytes of a file; compression is told by its first bytes, not by its name.

    Raises:
        TraceError: the file is missing, unreadable, empty, named ``.gz`` without being gzip, or damaged.
    """
    try:
        with path.open("rb") as raw:
            yield _decompressed(path, raw)
    except EOFError as error:
        raise TraceError(path, "the gzip stream ends too early", "copy the file again, it is cut") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(path, f"the gzip stream is damaged ({error})", "copy the file again") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(path, f"cannot be read ({reason})", "give a readable file") from error


def _decompressed(path: Path, raw: io.BufferedReader) -> BinaryIO:
    head = raw.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)]
    if not head:
        raise TraceError(path, "the file is empty", "give a file with at least one request")
    if head == _GZIP_MAGIC:
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if path.suffix.lower() == ".gz":
        raise TraceError(path, "named .gz but not gzip-compressed", "compress it or drop the .gz")
    return raw


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, line ends kept.

    Raises:
        TraceError: as ``opened``, or the text is not UTF-8, holds NUL bytes, or a line is beyond ``MAX_LINE``.
    """
    number = 0
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        try:
            for line in iter(lambda: text.readline(MAX_LINE), ""):
                number += 1
                if len(line) == MAX_LINE:
                    raise TraceError(path, f"line {number} is longer than {MAX_LINE} characters", "break it up")
                if "\0" in line:
                    raise TraceError(path, f"line {number} holds a NUL byte", "give a text file in UTF-8")
                yield line
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise TraceError(
                path,
                f"not UTF-8 after line {number} (byte 0x{byte:02x})",
                "convert it, e.g. with iconv -t utf-8",
            ) from error
