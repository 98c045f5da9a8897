"""The hottest keys in bounded memory, with true counters for those that stay hot. Pure state.

In: a key per arrival. Out: counts per key and the sketch's error. Space-Saving (Metwally et al. 2005): when
the sketch is full a new key takes the place, and inherits the count, of the least one; that count is its error,
and no key with more than arrivals / capacity is ever missing. A count that was inherited is no rate, so
a key that enters the counted set gets a counter of its own that starts at zero. The set has hysteresis: a key enters
within the first 90 % of the places and leaves when it falls beyond all of them. Source: 03-cacheroute §6.
"""

from heapq import heapify, heapreplace
from typing import NamedTuple

ENTER_MILLI = 900
SPARE = 2
"""Entries of the sketch per counted key: the tail must churn outside the counted set."""


class KeyCount(NamedTuple):
    """One counted key.

    Attributes:
        class_name: its class.
        key: 64-bit hash.
        arrivals: of it since it entered the counted set.
        error: by how much the sketch may overestimate it, in arrivals.
    """

    class_name: str
    key: int
    arrivals: int
    error: int


class SpaceSaving:
    """Approximate counts of the most frequent keys; O(log capacity) a key."""

    __slots__ = ("_capacity", "_counts", "_errors", "_heap")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._counts: dict[int, int] = {}
        self._errors: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []  # (count when last looked at, key): a lower bound of the count

    def add(self, key: int) -> None:
        """Count one arrival."""
        counts = self._counts
        if key in counts:
            counts[key] += 1
        elif len(counts) < self._capacity:
            counts[key], self._errors[key] = 1, 0
            self._heap.append((1, key))
            if len(counts) == self._capacity:
                heapify(self._heap)
        else:
            self._replace_least(key)

    def _replace_least(self, key: int) -> None:
        heap, counts = self._heap, self._counts
        seen, least = heap[0]
        while counts[least] != seen:  # it was counted since: its place in the heap is further down
            heapreplace(heap, (counts[least], least))
            seen, least = heap[0]
        del counts[least], self._errors[least]
        counts[key], self._errors[key] = seen + 1, seen
        heapreplace(heap, (seen + 1, key))

    @property
    def least(self) -> int:
        """Upper bound of the count of any key that is not held."""
        return min(self._counts.values()) if len(self._counts) == self._capacity else 0

    def error(self, key: int) -> int | None:
        """By how much the count of a key may be too high; None where it is not held."""
        return self._errors.get(key)

    def counts(self) -> dict[int, tuple[int, int]]:
        """(count, error) of the keys held: the true count lies between count − error and count."""
        return {key: (count, self._errors[key]) for key, count in self._counts.items()}

    def ranked(self) -> list[int]:
        """Keys by guaranteed count (count − error), the hottest first; ties by key."""
        counts, errors = self._counts, self._errors
        return sorted(counts, key=lambda key: (errors[key] - counts[key], key))

    def halve(self) -> None:
        """Forget half of the past, so that the ranking follows the traffic."""
        for key in self._counts:
            self._counts[key] //= 2
            self._errors[key] = -(-self._errors[key] // 2)
        self._heap = [(count, key) for key, count in self._counts.items()]
        heapify(self._heap)


class HotKeys:
    """The counted set over a sketch."""

    __slots__ = ("_class_of", "_counts", "_enter", "_places", "_sketch")

    def __init__(self, places: int) -> None:
        self._places = places
        self._enter = places * ENTER_MILLI // 1000
        self._sketch = SpaceSaving(SPARE * places)
        self._counts: dict[int, int] = {}
        self._class_of: dict[int, str] = {}

    def add(self, key: int, class_name: str) -> None:
        """Count one arrival; a new key enters at once while there are places for it."""
        self._sketch.add(key)
        counts = self._counts
        if key in counts:
            counts[key] += 1
            self._class_of[key] = class_name
        elif len(counts) < self._enter:
            counts[key] = 1
            self._class_of[key] = class_name

    def review(self) -> None:
        """Let keys enter and leave by their rank, then forget half of the past; once per table interval is enough."""
        ranked = self._sketch.ranked()
        stay = set(ranked[: self._places])
        for key in [key for key in self._counts if key not in stay]:
            del self._counts[key]
            self._class_of.pop(key, None)
        for key in ranked[: self._enter]:
            if len(self._counts) < self._places:
                self._counts.setdefault(key, 0)
        self._sketch.halve()

    def values(self) -> tuple[KeyCount, ...]:
        """The counted keys that were asked for since they entered."""
        least, error = self._sketch.least, self._sketch.error
        return tuple(
            KeyCount(class_name, key, self._counts[key], least if (known := error(key)) is None else known)
            for key, class_name in self._class_of.items()
        )
