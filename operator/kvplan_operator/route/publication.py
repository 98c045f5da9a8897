"""The index with its keys, ready to write; or nothing, where it would say nothing new.

Inputs: the head of the next index, what was decided for the keys, the table in the cluster. Output: a ``Publication``.
Held keys are taken over as they are, so that noise in their rates changes nothing. Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan_operator.route.keys import KeyDecision, KeyStep
from kvplan_operator.route.published import Held, Published
from kvplan_solver.cacheroute.gate import AffinityState
from kvplan_solver.cacheroute.publish import table_keys
from kvplan_solver.cacheroute.table import FORMAT, ShardFile, TableKeys, encode_table, write_index

Document = Mapping[str, Any]

NO_KEYS = TableKeys((), (), (), ())
_TABLE_PART = ("hashBits", "inline", "shards", "top")
_NOT_CONTENT = ("generation", "checksum")


@dataclass(frozen=True)
class Notes:
    """What is kept beside the index for the next round.

    Attributes:
        affinity: what the gate says.
        held: share bounds.
        now: seconds since the epoch.
    """

    affinity: AffinityState
    held: Held
    now: float


@dataclass(frozen=True, eq=False)
class Publication:
    """What to write, completely or not at all.

    Attributes:
        index: text of the index.
        document: the same, parsed.
        shards: to be there before the index is written.
        affinity: note for the gate's hysteresis.
        installed: note of when the keys were installed, seconds since the epoch.
        held: note of share bounds.
        retired: note of shards no longer named, and since when.
    """

    index: str
    document: Document
    shards: tuple[ShardFile, ...]
    affinity: AffinityState
    installed: float
    held: Held
    retired: Mapping[str, float]

    @property
    def generation(self) -> int:
        """Of the index."""
        return int(self.document["generation"])


def next_publication(
    fleet: str, head: Document, keys: KeyDecision | None, before: Published, notes: Notes
) -> Publication | None:
    """What to write; None where the cluster has the same content already.

    Args:
        fleet: its name.
        head: the next index without its keys.
        keys: what was decided for them; None gives no key a home.
        before: what the cluster has.
        notes: to keep beside the index.

    Raises:
        InvalidInput: the index is larger than a ConfigMap.
    """
    index, shards = _encoded(fleet, head, keys, before)
    document = json.loads(index)
    if _says_the_same(document, before) and _is_on(notes.affinity) == _is_on(before.affinity):
        return None
    installs = keys is not None and keys.step is KeyStep.INSTALL
    return Publication(
        index=index,
        document=document,
        shards=shards,
        affinity=notes.affinity,
        installed=notes.now if installs else before.installed,
        held=notes.held,
        retired=_retired(before, {entry["name"] for entry in document["shards"]}, notes.now),
    )


def _encoded(
    fleet: str, head: Document, keys: KeyDecision | None, before: Published
) -> tuple[str, tuple[ShardFile, ...]]:
    """The index with its keys: new ones, those in force, or none."""
    if keys is not None and keys.plan is not None:
        encoded = encode_table(fleet, head, table_keys(keys.plan))
        return encoded.index, encoded.shards
    held = before.document
    stays = keys is not None and keys.step is KeyStep.HOLD and before.table is not None
    if held is not None and stays and held["hash"] == head["hash"]:
        return write_index({**head, "format": FORMAT, **{name: held[name] for name in _TABLE_PART}}), ()
    return encode_table(fleet, head, NO_KEYS).index, ()


def _says_the_same(document: Document, before: Published) -> bool:
    """Whether the index in force has this content, and all its shards are there."""
    if before.document is None or before.table is None:
        return False
    return _content(document) == _content(before.document)


def _content(document: Document) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in _NOT_CONTENT}


def _is_on(state: AffinityState) -> bool:
    """All that the hysteresis remembers."""
    return state is AffinityState.ON


def _retired(before: Published, named: set[str], now: float) -> dict[str, float]:
    """Since when shards that exist are no longer named; those collected meanwhile are forgotten."""
    known = {name: at for name, at in before.retired.items() if name in before.shards and name not in named}
    return known | {name: now for name in sorted(before.named_shards - named) if name not in known}
