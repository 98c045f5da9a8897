"""Hot keys and reuse gaps, from the routers' series.

Inputs: ``Replies``. Outputs: keys ranked by count − error (03-cacheroute: a key whose error exceeds half its count is
never planned), and the token-weighted histogram of reuse gaps. Keys arrive hashed: 16 hex digits. Pure.
"""

import re
from collections.abc import Iterator, Set

from kvplan_operator.model.class_measurement import counted_seconds
from kvplan_operator.model.fleet_queries import Ask
from kvplan_operator.model.measured_facts import kept, partly
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.router_sight import Sight
from kvplan_operator.model.snapshot import Fact, KeyMeasured

Keys = tuple[KeyMeasured, ...]
ReuseGaps = tuple[tuple[float, ...], tuple[float, ...]]

_HASH = re.compile(r"[0-9a-f]{16}")


def measured_keys(class_names: Set[str], replies: Replies, sight: Sight, before: Fact[Keys] | None) -> Fact[Keys]:
    """The keys of some classes, hottest first; kept where the routers count none."""
    asked = (Ask.KEY_REQUESTS, Ask.KEY_ERRORS)
    why = sight.unusable or replies.trouble(*asked)
    counted = bool(replies.answer(Ask.KEY_REQUESTS).finite)
    if why or not counted:
        return kept(before, replies.source, replies.now, why or "no router counts requests by key yet")
    keys = [key for key in _keys(class_names, replies) if 2 * key.error_per_second <= key.requests_per_second]
    keys.sort(key=lambda key: (key.error_per_second - key.requests_per_second, key.class_name, key.key))
    lacking = "; ".join(filter(None, [sight.lacking, replies.doubts(*asked)]))
    return partly(tuple(keys), replies.source, sight.seen, lacking)


def _keys(class_names: Set[str], replies: Replies) -> Iterator[KeyMeasured]:
    seconds = {name: counted_seconds(replies, name) for name in class_names}
    errors = {_identity(s.labels): s.value for s in replies.answer(Ask.KEY_ERRORS).finite}
    for series in replies.answer(Ask.KEY_REQUESTS).finite:
        name, key = _identity(series.labels)
        window = seconds.get(name, 0.0)
        if window > 0 and series.value >= 0 and _HASH.fullmatch(key):
            error = max(0.0, errors.get((name, key), 0.0))
            yield KeyMeasured(name, int(key, 16), series.value / window, error / window)


def _identity(labels: object) -> tuple[str, str]:
    match labels:
        case {"class": str() as name, "key": str() as key}:
            return name, key
    return "", ""


def measured_reuse_gaps(replies: Replies, sight: Sight, before: Fact[ReuseGaps] | None) -> Fact[ReuseGaps]:
    """Tokens by the time since their prefix was used last, without those beyond the last edge."""
    why = sight.unusable or replies.trouble(Ask.REUSE_GAPS)
    found = replies.histogram(Ask.REUSE_GAPS)
    if why or found is None:
        return kept(before, replies.source, replies.now, why or "no router measures reuse gaps yet")
    lacking = "; ".join(filter(None, [sight.lacking, replies.doubts(Ask.REUSE_GAPS)]))
    return partly((found.edges, found.counts), replies.source, sight.seen, lacking)
