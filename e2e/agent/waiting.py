"""Wait for the first of several things, and leave no task behind."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*things: Coroutine[Any, Any, Any], seconds: float | None = None) -> bool:
    """Return whether one of the things ended within the time; the others are cancelled; an error of one is raised."""
    tasks = [asyncio.ensure_future(thing) for thing in things]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return bool(done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
