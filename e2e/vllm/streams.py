"""Clients that always have a request open, whatever the speed of the engines.

Inputs: where to send, what to ask. Outputs: a ``Tally`` of every answer. Closed-loop: a slow machine gets fewer
requests and no queue, a fast one is never without an open stream.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from aiohttp import ClientSession

from e2e.loop.asking import ask
from e2e.loop.load import Load, Tally
from e2e.loop.shapes import Shape


@asynccontextmanager
async def always_open(clients: int, gateway: Callable[[], str], shape: Shape, model: str) -> AsyncIterator[Tally]:
    """As many requests open as there are clients while the block runs; the last ones are read to their end.

    Args:
        clients: how many.
        gateway: URL for the next request.
        shape: of the requests.
        model: name of the model.
    """
    tally, ended = Tally(), asyncio.Event()

    async def client(session: ClientSession, rng: Random) -> None:
        while not ended.is_set():
            tally.add(await ask(session, gateway(), shape.draw(rng), model))

    async with Load.session() as session, asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(session, Random(number)))  # noqa: S311 - lengths and texts, no secrets
        try:
            yield tally
        finally:
            ended.set()
