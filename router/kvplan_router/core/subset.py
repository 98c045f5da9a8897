"""The gateway's subset hint: which destinations it allows. Pure.

In: a list or comma-separated text of ``ip`` or ``ip:port``, IPv6 in brackets or bare. Out: the serving destinations it
names. An empty answer means 503: the protocol forbids any other destination. Source: 05-router §2.
"""

from collections.abc import Iterable, Mapping, Sequence

from kvplan_router.core.destination import Destination


def allowed_by(subset: str | Sequence[str], serving: Iterable[Destination]) -> Mapping[str, Destination]:
    """The serving destinations that the hint names, by slot."""
    named = _entries(subset)
    return {d.slot: d for d in serving if d.address in named or d.host in named}


def _entries(subset: str | Sequence[str]) -> frozenset[str]:
    parts = (subset,) if isinstance(subset, str) else subset
    entries = (entry.strip() for part in parts if isinstance(part, str) for entry in part.split(","))
    return frozenset(entry.strip("[]") if entry.endswith("]") else entry for entry in entries)
