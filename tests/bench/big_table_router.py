"""A whole router process whose table has shards, which come from files: what a cluster would give it.

Takes the router's own options; ``--table`` is a directory with index.json and the shards.
"""

import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import uvloop

from kvplan_router.main import given_secret
from kvplan_router.process import serve
from kvplan_router.settings import read_settings
from kvplan_router.source.files import FileSource


class DirectorySource:
    """See :class:`kvplan_router.source.interface.TableSource`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def texts(self) -> AsyncIterator[bytes]:
        """See the protocol."""
        return FileSource(self._directory).texts()

    async def shards(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """See the protocol."""
        return {name: (self._directory / name).read_bytes() for name in names}


def main() -> None:
    """Serve until SIGTERM."""
    settings = read_settings(sys.argv[1:])
    secret = given_secret(settings)
    assert secret is not None  # the bench names a file
    uvloop.run(serve(settings, secret, DirectorySource(settings.table_path)))


if __name__ == "__main__":
    main()
