"""One round of budget shares for a whole index: the common shares, and those of slots too small for everyone.

Inputs: the index in force with its note of bounds, the router processes, the next slots, the largest reservations.
Outputs: the ``routers`` entries of the next index and its slots, and the next note. Moves follow ``shares``; a slot
that disappears keeps its bounds until their owners let go, because it may come back. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan_operator.route.acknowledge import RouterProcess
from kvplan_operator.route.published import Held, Published
from kvplan_operator.route.shares import Holding, Holdings, equal_shares, limit_tokens, moved, owners, settled
from kvplan_operator.route.slots import PublishedSlot

COMMON = "*"
"""The group of all slots without shares of their own."""
NOBODY = {"identity": "-", "shareMilli": 0}
"""Stands in ``routers`` before any process is known: an empty list would give everything to each reader."""

Entries = list[dict[str, Any]]


@dataclass(frozen=True)
class Shares:
    """What the next index says of shares.

    Attributes:
        routers: for all slots without entries of their own.
        by_slot: for the others.
        held: bounds above the granted shares, for the note beside the index.
    """

    routers: Entries
    by_slot: Mapping[str, Entries]
    held: Held


def share_round(
    before: Published,
    routers: Sequence[RouterProcess],
    slots: Sequence[PublishedSlot],
    largest_reservation: Mapping[str, int],
    generation: int,
) -> Shares:
    """Shares of the next index.

    Args:
        before: what the cluster has.
        routers: every process that may run.
        slots: of the next index.
        largest_reservation: largest R̃ by configuration, KV tokens.
        generation: of the next index.
    """
    return _Round(before, routers, generation).shares(slots, largest_reservation)


class _Round:
    """The parts that all groups of slots have in common."""

    def __init__(self, before: Published, routers: Sequence[RouterProcess], generation: int) -> None:
        self.before, self.generation = before, generation
        self.by_identity = {router.identity: router for router in routers if router.identity is not None}
        self.active = sorted(name for name, router in self.by_identity.items() if not router.leaving)
        self.unidentified = any(router.identity is None for router in routers)
        document = before.document or {"routers": [], "slots": []}
        self.listed = {entry["slot"]: entry for entry in document["slots"]}
        granted = _granted(document["routers"]) if before.document else self._unknown()
        self.common = _with_bounds(granted, before.held.get(COMMON, {}))

    def shares(self, slots: Sequence[PublishedSlot], largest_reservation: Mapping[str, int]) -> Shares:
        """Everything that the next index says."""
        common = self._step(self.common, [s for s in self.listed if "routers" not in self.listed[s]], self.active)
        special: dict[str, Holdings] = {}
        for slot in slots:
            wanted = owners(slot.name, self.active, slot.budget_tokens, largest_reservation.get(slot.configuration, 0))
            if wanted != self.active or self._is_special(slot.name):
                step = self._step(self._holdings(slot.name), [slot.name], wanted)
                if wanted != self.active or not _same(step, common):
                    special[slot.name] = step
        names = {slot.name for slot in slots}
        vanished = {name: self._vanished(name) for name in self._all_special() if name not in names}
        return Shares(
            routers=_entries(common) or [NOBODY],
            by_slot={name: _entries(step) for name, step in special.items()},
            held=_bounds({COMMON: common, **special, **vanished}),
        )

    def _vanished(self, slot: str) -> dict[str, Holding]:
        """A slot that the index no longer lists grants nothing to anybody."""
        return moved(self._settled(self._holdings(slot), [slot]), {}, self.generation)

    def _settled(self, holdings: Holdings, slots: Sequence[str]) -> dict[str, Holding]:
        # While a process has not said who it is, nobody listed counts as gone: it may be any of them.
        present = {*self.by_identity, *(holdings if self.unidentified else ())}
        return settled(holdings, present, self._let_go(slots))

    def _step(self, holdings: Holdings, slots: Sequence[str], wanted: Sequence[str]) -> dict[str, Holding]:
        now, targets = self._settled(holdings, slots), equal_shares(wanted)
        # A process on its way out keeps what it has until it is gone: its last requests still hold tokens.
        leaving = {name: now[name].share for name in now if name not in self.active}
        return moved(now, targets | leaving, self.generation)

    def _let_go(self, slots: Sequence[str]) -> Callable[[str, Holding], bool]:
        """Whether a router uses the newer share, and has no more reserved on any of the slots."""

        def kept(name: str, part: Holding) -> bool:
            router = self.by_identity.get(name)
            if router is None or router.state is None or not router.has((self.before.epoch, part.since)):
                return False
            reserved = router.state.reserved
            return all(reserved.get(slot, 0) <= self._limit(slot, part.share) for slot in slots)

        return kept

    def _limit(self, slot: str, share: int) -> int:
        return limit_tokens(self.listed[slot]["budgetTokens"], share) if slot in self.listed else 0

    def _is_special(self, slot: str) -> bool:
        return "routers" in self.listed.get(slot, {}) or slot in self.before.held

    def _all_special(self) -> list[str]:
        held = [name for name in self.before.held if name != COMMON]
        return sorted({*held, *(name for name, entry in self.listed.items() if "routers" in entry)})

    def _holdings(self, slot: str) -> Holdings:
        """What routers hold of one slot: its own shares, else what is left of them, else the common ones."""
        if not self._is_special(slot):
            return self.common
        granted = _granted(self.listed.get(slot, {}).get("routers", []))
        return _with_bounds(granted, self.before.held.get(slot, {}))

    def _unknown(self) -> dict[str, Holding]:
        """Without an index to read: routers that never had one hold nothing, the others an equal part."""
        part = equal_shares(self.by_identity)
        fresh = {name for name, router in self.by_identity.items() if router.state and router.state.epoch == 0}
        return {name: Holding(0, 0 if name in fresh else part[name], self.generation) for name in self.by_identity}


def _granted(entries: Sequence[Mapping[str, Any]]) -> dict[str, Holding]:
    return {
        entry["identity"]: Holding(entry["shareMilli"], entry["shareMilli"]) for entry in entries if entry != NOBODY
    }


def _with_bounds(granted: Holdings, bounds: Mapping[str, tuple[int, int]]) -> dict[str, Holding]:
    found = dict(granted)
    for name, (held, since) in bounds.items():
        share = found.get(name, Holding()).share
        found[name] = Holding(share, max(held, share), since)
    return found


def _same(step: Holdings, common: Holdings) -> bool:
    """Whether a slot may follow the common shares again: nothing of its own is left to wait for."""
    if any(part.held > part.share for part in step.values()):
        return False
    return {n: p.share for n, p in step.items() if p.share} == {n: p.share for n, p in common.items() if p.share}


def _entries(holdings: Holdings) -> Entries:
    return [{"identity": name, "shareMilli": part.share} for name, part in sorted(holdings.items()) if part.share]


def _bounds(groups: Mapping[str, Holdings]) -> Held:
    found = {
        group: {name: (part.held, part.since) for name, part in sorted(holdings.items()) if part.held > part.share}
        for group, holdings in groups.items()
    }
    return {group: bounds for group, bounds in found.items() if bounds}
