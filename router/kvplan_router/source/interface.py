"""A place that tables come from: the cluster's API, or a file. What :mod:`keeper` asks of it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Protocol


class TableSource(Protocol):
    """Follows one fleet's index."""

    def texts(self) -> AsyncIterator[bytes]:
        """The index's text now, and again whenever it has changed; texts between two looks may be left out."""

    async def shards(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Those of the named shards that are there."""
