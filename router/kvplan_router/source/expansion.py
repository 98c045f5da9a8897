"""A table with shards, expanded in a process of its own and mapped into this one.

In: a checked index and the bytes of its shards. Out: a :class:`Table` whose columns are mapped files. The decoding of a
million keys takes seconds of Python; here it neither stops the event loop nor leaves garbage in this process, and
nothing in a shard can take the router down. Source: 03-cacheroute §5, 05-router §7.

The child is this very module: ``python -m kvplan_router.source.expansion DIRECTORY``.
"""

import asyncio
import json
import mmap
import os
import sys
import tempfile
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvplan_solver.cacheroute.table import Home, Index, RefusalReason, Table, TableRefused, read_index, read_table

_INDEX, _SHARDS, _HASHES, _HOMES, _RESULT = "index.json", "shards", "hashes", "homes", "result.json"


class ExpansionFailed(Exception):
    """The child ended without a result."""


async def expand(index: Index, text: bytes, shards: Mapping[str, bytes], fingerprint: str | None) -> Table:
    """Expand a table.

    Raises:
        TableRefused: with the reason.
        ExpansionFailed: the child was killed, or found no memory.
    """
    with tempfile.TemporaryDirectory(prefix="kvplan-table-") as name:
        directory = Path(name)
        await asyncio.to_thread(_store, directory, text, shards)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, name, fingerprint or "", env={**os.environ, "PYTHONPATH": _search_path()}
        )
        try:
            status = await child.wait()
        finally:
            if child.returncode is None:
                child.kill()
        if status:
            raise ExpansionFailed(f"the expansion of {index.order} ended with status {status}")
        return _mapped(index, directory)


def _search_path() -> str:
    return os.pathsep.join(path for path in sys.path if path)


def _store(directory: Path, text: bytes, shards: Mapping[str, bytes]) -> None:
    (directory / _INDEX).write_bytes(text)
    (directory / _SHARDS).mkdir()
    for name, data in shards.items():
        (directory / _SHARDS / name).write_bytes(data)


def _mapped(index: Index, directory: Path) -> Table:
    result = json.loads((directory / _RESULT).read_bytes())
    if "reason" in result:
        raise TableRefused(RefusalReason(result["reason"]), result["detail"])
    homes = [Home(tuple(destinations), backup) for destinations, backup in result["homes"]]
    columns = _column(directory / _HASHES).cast("Q"), _column(directory / _HOMES).cast("I")
    return Table(index.order, index.checksum, index.document["hashBits"], homes, columns)


def _column(file: Path) -> "memoryview[int]":
    """The file's content; it lives on when the file's name is gone."""
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        return memoryview(mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ) if size else b"")


def main(directory: Path, fingerprint: str | None) -> None:
    """Expand what the directory holds and leave the result there."""
    shards = {file.name: file.read_bytes() for file in (directory / _SHARDS).iterdir()}
    try:
        table = read_table(read_index((directory / _INDEX).read_bytes()), shards, fingerprint=fingerprint)
    except TableRefused as refused:
        result: dict[str, Any] = {"reason": refused.reason, "detail": str(refused)}
    else:
        result = {"homes": table.homes}
        hashes, homes = table.columns
        (directory / _HASHES).write_bytes(array("Q", hashes).tobytes())
        (directory / _HOMES).write_bytes(array("I", homes).tobytes())
    (directory / _RESULT).write_text(json.dumps(result))


if __name__ == "__main__":
    os.nice(5)  # requests go first
    main(Path(sys.argv[1]), sys.argv[2] or None)
