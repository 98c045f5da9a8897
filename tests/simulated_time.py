"""An event loop whose time jumps to the next timer instead of passing: waits are instant and exact."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Selects without waiting; the time that would have passed is added up."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or not timeout:
            return ready
        self.passed += timeout
        return []


class SimulatedTime(asyncio.SelectorEventLoop):
    """The loop: its clock starts at 0 and moves only by what is waited for."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.passed


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedTime) as runner:
        return runner.run(coroutine)
