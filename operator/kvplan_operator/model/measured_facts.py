"""Facts: a new value, or the last good one with the reason why it is not new. Pure."""

from dataclasses import replace
from typing import TypeVar

from kvplan_operator.model.snapshot import Fact, Quality

T = TypeVar("T")


def fresh(value: T, source: str, seen: float) -> Fact[T]:
    """A value from all of its sources."""
    return Fact(value, Quality.VALUE, source, seen)


def partly(value: T, source: str, seen: float, lacking: str) -> Fact[T]:
    """A value from part of its sources; from all of them where nothing is lacking."""
    return Fact(value, Quality.PARTIAL, source, seen, lacking) if lacking else fresh(value, source, seen)


def kept(before: Fact[T] | None, source: str, now: float, why: str) -> Fact[T]:
    """The last good value as Stale, with the time it was true; NoData where there never was one."""
    if before is None or before.value is None:
        return Fact(None, Quality.NO_DATA, source, now, why)
    return replace(before, quality=Quality.STALE, detail=why)
