"""The two clocks: one to decide by, one to show people.

Output: seconds since boot, or the time of day. Nothing is decided by the time of day: people and NTP set it.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""Seconds since an arbitrary moment; never set, never stopped."""


def boot_clock() -> float:
    """Seconds since boot; unlike the monotonic clock it also counts the sleep of a suspended machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_clock() -> datetime:
    """The time people read."""
    return datetime.now(UTC)


def micro_time(moment: datetime) -> str:
    """A moment as Leases and Events carry it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
