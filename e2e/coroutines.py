"""Tests that are coroutines: each is run to its end on an event loop of its own, with a deadline.

A conftest imports ``pytest_pyfunc_call`` and ``loop``; fixtures that must live on the test's loop take ``loop``.
"""

import asyncio
import inspect
from collections.abc import Iterator
from typing import cast

import pytest

_DEADLINE_SECONDS = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test; others are pytest's own business."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    scenario = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    loop = cast(asyncio.Runner, pyfuncitem.funcargs["loop"])
    loop.run(asyncio.wait_for(scenario, _DEADLINE_SECONDS))
    return True


@pytest.fixture(autouse=True)
def loop() -> Iterator[asyncio.Runner]:
    """The event loop of one test."""
    with asyncio.Runner() as runner:
        yield runner
