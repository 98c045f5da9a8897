"""Reflectors that run together, and whether all of them still do.

Inputs: reflectors. Outputs: tasks, and ``broken``: a reflector ends by itself only through a fault of ours, and what is
known of its kind would then stand still unnoticed, so the process is to be started again. Must not look at objects.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from kvplan_operator.kube.reflector import Reflector

_LOG = logging.getLogger(__name__)


class Watches:
    """Reflectors that run.

    Attributes:
        broken: whether one of them ended by itself.
    """

    def __init__(self) -> None:
        self.broken = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, reflectors: Iterable[Reflector[Any]]) -> None:
        """Run them; returns once every first list is in.

        Raises:
            Exception: whatever ended one of them before that.
        """
        started = [(reflector, asyncio.create_task(reflector.run())) for reflector in reflectors]
        for _, task in started:
            task.add_done_callback(self._ended)
            self._tasks.append(task)
        await asyncio.gather(*(_synced(reflector, task) for reflector, task in started))

    async def stop(self) -> None:
        """End them all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            self.broken = True
            _LOG.error("a watch ended: %s", task.exception(), exc_info=task.exception())


async def _synced(reflector: Reflector[Any], running: "asyncio.Task[None]") -> None:
    """Wait for the first list, or for the end of what would read it."""
    listed = asyncio.create_task(reflector.synced.wait())
    try:
        await asyncio.wait([listed, running], return_when=asyncio.FIRST_COMPLETED)
        if not listed.done():
            running.result()
    finally:
        listed.cancel()
