"""The table in force, and every refusal on the way to it.

In: a source's texts. Out: calls of ``install`` with an index and its table, both whole and checked. A refusal of any
kind leaves the last good table in force for as long as it takes, and is counted under its reason. Source: 05-router §7.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable

from kvplan_router.source.expansion import ExpansionFailed, expand
from kvplan_router.source.interface import TableSource
from kvplan_solver.cacheroute.table import (
    Index,
    RefusalReason,
    Table,
    TableRefused,
    check_succession,
    read_index,
    read_table,
)

log = logging.getLogger(__name__)

EXPANSION_FAILED = "ExpansionFailed"
"""Not the table's fault: no memory, say."""
INSTALL_FAILED = "InstallFailed"
"""A checked table that this process cannot use: a fault of ours."""
RETRIES = 5
RETRY_SECONDS = 1.0
"""A shard may reach the API server's caches after the index that names it."""


class TableKeeper:
    """Follows one source.

    Attributes:
        refusals: how often a table was refused, by reason.
        since: seconds since the epoch at which the table in force was installed; 0.0 before the first one.
        loaded: set once a table is in force.
    """

    def __init__(
        self,
        source: TableSource,
        install: Callable[[Index, Table], None],
        fingerprint: str | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source, self._install, self._fingerprint, self._clock = source, install, fingerprint, clock
        self._in_force: Table | None = None
        self.refusals: Counter[str] = Counter()
        self.since = 0.0
        self.loaded = asyncio.Event()

    @property
    def order(self) -> tuple[int, int]:
        """(epoch, generation) in force; (0, 0) before the first table."""
        return self._in_force.order if self._in_force else (0, 0)

    async def run(self) -> None:
        """Follow the source until cancelled."""
        async for text in self._source.texts():
            await self.take(text)

    async def take(self, text: bytes) -> None:
        """Install this table, or count why not."""
        for attempt in range(RETRIES):
            reason = await self._refusal(text)
            if reason is None:
                return
            if reason != RefusalReason.SHARD_MISSING or attempt == RETRIES - 1:
                self.refusals[reason] += 1
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _refusal(self, text: bytes) -> str | None:
        try:
            index, table = await self._expanded(text)
        except TableRefused as refused:
            log.warning("table refused, the old one stays in force: %s", refused)
            return str(refused.reason)
        except ExpansionFailed as failed:
            log.warning("table not read, the old one stays in force: %s", failed)
            return EXPANSION_FAILED
        return self._installed(index, table)

    def _installed(self, index: Index, table: Table) -> str | None:
        try:
            self._install(index, table)
        except Exception:  # a table must never take the router down, whatever is wrong with either
            log.exception("table %s cannot be used, the old one stays in force", table.order)
            return INSTALL_FAILED
        self._in_force, self.since = table, self._clock()
        self.loaded.set()
        log.info("table %s in force, %d keys", table.order, len(table))
        return None

    async def _expanded(self, text: bytes) -> tuple[Index, Table]:
        index = await asyncio.to_thread(read_index, text)
        check_succession(index, self._in_force)
        names = [entry["name"] for entry in index.document["shards"]]
        if not names:  # at most 4,000 keys: milliseconds
            return index, await asyncio.to_thread(read_table, index, {}, self._in_force, self._fingerprint)
        shards = await self._source.shards(names)
        return index, await expand(index, text, shards, self._fingerprint)
