"""A table in a local file, or in a mounted ConfigMap.

In: a path. Out: the file's text whenever it has changed. A volume of the kubelet changes by a swap of symbolic links,
so what is compared is the file behind the path. Such a source has no shards: a volume names fixed ConfigMaps, and
shards have content-addressed names (docs/contracts/index.md).
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kvplan_solver.cacheroute.table import INDEX_BYTES_MAX

INDEX_FILE = "index.json"
"""The index's name in a directory: its key in the ConfigMap."""
LOOK_SECONDS = 0.25
"""Between two looks at the file; a look is one system call."""


@dataclass(frozen=True)
class FileSource:
    """See :class:`kvplan_router.source.interface.TableSource`.

    Attributes:
        path: the index's file, or a directory that holds it as ``index.json``.
        look_seconds: between two looks.
    """

    path: Path
    look_seconds: float = LOOK_SECONDS

    async def texts(self) -> AsyncIterator[bytes]:
        """See the protocol; a file that is not there (yet) is waited for."""
        seen: tuple[int, ...] = ()
        while True:
            file = self.path / INDEX_FILE if self.path.is_dir() else self.path
            identity = _identity(file)
            if identity not in {(), seen}:
                text = await asyncio.to_thread(_read, file)
                if text is not None:
                    seen = identity
                    yield text
            await asyncio.sleep(self.look_seconds)

    async def shards(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """See the protocol: none."""
        del names
        return {}


def _identity(file: Path) -> tuple[int, ...]:
    """What tells one content from the next; empty where there is no file."""
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read(file: Path) -> bytes | None:
    """The text, one byte longer than allowed at most; None where it went away."""
    try:
        with file.open("rb") as opened:
            return opened.read(INDEX_BYTES_MAX + 1)
    except OSError:
        return None
