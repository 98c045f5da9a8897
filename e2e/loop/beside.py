"""Work that goes on beside a block, and whose failure is the block's.

Inputs: a coroutine that ends only when it is cancelled. Outputs: a context manager.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the work while the block runs.

    Raises:
        Exception: whatever ended the work before the block.
    """
    running = asyncio.create_task(work)
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})
        if not running.cancelled():
            running.result()
