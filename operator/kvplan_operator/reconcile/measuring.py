"""Measurements of a fleet, taken beside its looks: a slow Prometheus delays no look but the very first.

Inputs: the fleet, its classes and view, ``Sources``. Output: ``memory.measured``. One look at a time; its end marks the
fleet. While a rollout or an acknowledgement is waited for, engines and routers are asked more often: they alone.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.snapshot import ClusterView, Measured
from kvplan_operator.observe.measure import Sources, look_at_pods, measure
from kvplan_operator.reconcile.memory import Memory

FIRST_SECONDS: Final = 5.0
"""How long the first look waits for measurements before it goes on without."""
MOVING_SECONDS: Final = 2.0
"""Between two looks at engines and routers while something is waited for."""


class Measuring:
    """The measurements of one fleet."""

    def __init__(self, sources: Sources, mark: Callable[[], None]) -> None:
        """Prepare.

        Args:
            sources: shared by all fleets.
            mark: called when new measurements are there.
        """
        self._sources, self._mark = sources, mark

    async def refresh(
        self,
        fleet: ServingFleet,
        classes: tuple[RequestClass, ...],
        view: ClusterView,
        memory: Memory,
        now: float,
        *,
        moving: bool,
    ) -> None:
        """Take what has arrived, and ask again if that is due."""
        _collect(memory)
        if memory.measuring is not None:
            return
        first = memory.measured_at == 0.0
        if not _within(now - memory.measured_at, float(fleet.spec.routing.table_interval_seconds)):
            memory.measured_at = memory.pods_at = now
            asked = measure(fleet, classes, view, self._sources, now, memory.measured)
        elif moving and not _within(now - memory.pods_at, MOVING_SECONDS):
            memory.pods_at = now
            asked = look_at_pods(fleet, view, self._sources, now, memory.measured)
        else:
            return
        memory.measuring = asyncio.create_task(asked)
        if first:
            await asyncio.wait([memory.measuring], timeout=FIRST_SECONDS)
            _collect(memory)
        if memory.measuring is not None:
            memory.measuring.add_done_callback(self._tell)

    def _tell(self, task: "asyncio.Task[Measured]") -> None:
        if not task.cancelled():
            self._mark()


def _within(age: float, interval: float) -> bool:
    """Whether something is young; a clock that was set back is no reason to wait until it has caught up."""
    return 0 <= age < interval


def _collect(memory: Memory) -> None:
    task = memory.measuring
    if task is not None and task.done():
        memory.measuring = None  # before its error, if it has one, ends this look
        memory.measured, memory.asked = task.result(), True
