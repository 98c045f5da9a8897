"""The status to write: the stored one, changed only where something really changed.

Inputs: the stored status and a fresh rendering, as wire values. Output: the merged status; equal to the stored one
where there is nothing to write. Measured numbers follow ``quantise``; words, counts and conditions change at once;
a transition time moves with its condition's status only; a message stays while nothing but its measured numbers
moved, and those within 10 %. Merging twice changes nothing: merge(merge(s, f), f) == merge(s, f). Pure.
Source: 04-control-loop §4, 01-api.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kvplan_operator.status.quantise import BAND, quantise, settle

Wire = Mapping[str, Any]

MEASURED = frozenset({
    "requestsPerSecondMilli", "samples", "meanOutputTokens", "radiusTokens", "shiftThresholdTokens",
    "meanMilliseconds", "p50Milliseconds", "p99Milliseconds", "firstTokenMilliseconds", "decodeMicrosecondsPerToken",
    "meanLatencyMilliseconds", "rejectedMilli", "overflowMilli", "utilisationMilli", "kvUseMilli",
    "waitMilliseconds", "improvementMilli", "durationMilliseconds", "keys",
})  # fmt: skip
"""Fields whose numbers are measured or follow from measurements; all others are exact."""
CURVES = frozenset({"quantiles"})
"""Lists of measured numbers that are kept or replaced as a whole, because their order must hold."""
CARRIED = ("lastSolve",)
"""Fields that are no reason for a write of their own: they go along with the next one (and are metrics)."""
KEYS = ("name", "configuration", "probabilityMilli")
"""What tells the entries of a list apart."""

_NUMBER = re.compile(r"(?<![\w.:/-])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w:/-])")
"""A number that stands alone: digits inside names, digests and times are words."""


def merge(stored: Wire, fresh: Wire) -> dict[str, Any]:
    """The status to write.

    Args:
        stored: as the API server has it; empty before the first write.
        fresh: as it was just rendered.
    """
    merged = {name: _value(name, stored.get(name), value) for name, value in fresh.items()}
    at_rest = merged | {name: stored[name] for name in CARRIED if name in stored}
    return at_rest if at_rest == dict(stored) else merged


def _value(name: str, stored: Any, fresh: Any) -> Any:
    if name in CURVES:
        return _curve(stored, fresh)
    if name == "conditions":
        return _conditions(stored or (), fresh)
    if isinstance(fresh, Mapping):
        before: Wire = stored if isinstance(stored, Mapping) else {}
        return {key: _value(key, before.get(key), value) for key, value in fresh.items()}
    if isinstance(fresh, list):
        return _entries(stored if isinstance(stored, list) else [], fresh)
    if name in MEASURED and isinstance(fresh, int):
        return settle(stored, fresh) if isinstance(stored, int) else quantise(fresh)
    return fresh


def _entries(stored: Sequence[Any], fresh: Sequence[Any]) -> list[Any]:
    before = {_key(entry): entry for entry in stored}
    return [_value("", before.get(_key(entry)), entry) for entry in fresh]


def _key(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return next((entry[name] for name in KEYS if name in entry), None)


def _curve(stored: Any, fresh: Sequence[Wire]) -> list[Any]:
    """The stored points while none of them moved, else all fresh ones."""
    points = [point["probabilityMilli"] for point in fresh]
    if isinstance(stored, list) and [point["probabilityMilli"] for point in stored] == points:
        pairs = [(a["tokens"], b["tokens"]) for a, b in zip(stored, fresh, strict=True)]
        if all(settle(a, b) == a for a, b in pairs):
            return stored
    return [{**point, "tokens": quantise(point["tokens"])} for point in fresh]


def _conditions(stored: Sequence[Wire], fresh: Sequence[Wire]) -> list[Any]:
    before = {condition["type"]: condition for condition in stored}
    return [_condition(before.get(condition["type"]), condition) for condition in fresh]


def _condition(stored: Wire | None, fresh: Wire) -> dict[str, Any]:
    if stored is None or stored["status"] != fresh["status"]:
        return dict(fresh)
    kept = {"lastTransitionTime": stored["lastTransitionTime"]}
    if stored["reason"] == fresh["reason"] and says_the_same(stored["message"], fresh["message"]):
        kept["message"] = stored["message"]
    return {**fresh, **kept}


def says_the_same(stored: str, fresh: str) -> bool:
    """Whether two messages differ in nothing but numbers, and those by no more than 10 %."""
    if _NUMBER.sub("0", stored) != _NUMBER.sub("0", fresh):
        return False
    pairs = zip(_NUMBER.findall(stored), _NUMBER.findall(fresh), strict=True)
    return all(_near(float(a), float(b)) for a, b in pairs)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= BAND * max(a, b)
