"""Everything counted of the traffic, in one place. Pure state.

In: arrivals with their class and key. Out: :class:`Measurements`. Keys are 64-bit hashes here already.
"""

from typing import NamedTuple

from kvplan_router.core.measure import ClassMeter, ClassValues
from kvplan_router.core.reuse import ReuseGaps, ReuseValues
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.sketch import HotKeys, KeyCount
from kvplan_router.core.view import ClassView


class Measurements(NamedTuple):
    """Everything a metrics page shows of the traffic.

    Attributes:
        classes: by class name; ``(unmatched)`` stands for requests of no class.
        keys: the counted keys.
        reuse: gaps between requests of one key, by tokens.
    """

    classes: dict[str, ClassValues]
    keys: tuple[KeyCount, ...]
    reuse: ReuseValues


class Traffic:
    """Meters of all classes, hot keys and reuse gaps."""

    def __init__(self, settings: CoreSettings) -> None:
        self._meters: dict[str, ClassMeter] = {}
        self._keys = HotKeys(settings.counted_keys)
        self._reuse = ReuseGaps(settings.remembered_keys)

    def meter(self, class_name: str) -> ClassMeter:
        """The counters of a class, opened on first use; they outlive every table."""
        meter = self._meters.get(class_name)
        if meter is None:
            meter = self._meters[class_name] = ClassMeter()
        return meter

    def arrived(self, class_view: ClassView, key: int | None, now: float) -> None:
        """Count one arrival."""
        meter = class_view.meter
        meter.arrived(now)
        if key is not None:
            self._keys.add(key, class_view.name)
            self._reuse.asked(key, class_view.prefix_tokens or meter.mean_prompt_tokens, now)

    def review_keys(self) -> None:
        """Let keys enter and leave the counted set."""
        self._keys.review()

    def values(self) -> Measurements:
        """A copy that no later event changes."""
        classes = {name: meter.values() for name, meter in self._meters.items()}
        return Measurements(classes, self._keys.values(), self._reuse.values())
