"""A destination as the hot path sees it: where it is, how loaded, how sessions hash to it. Pure.

In: a slot of the index and its account. Out: :class:`Destination`. Load is requests in flight, here and elsewhere, on
the scale of the largest serving budget at full weight: a group with half the tokens counts each request twice.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kvplan_router.core.slot_account import SlotAccount

FULL_WEIGHT = 1000
_MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: multiplying by it spreads the bits


class Destination:
    """One slot with an address or without; immutable but for the account it refers to."""

    __slots__ = ("_scale", "_seed", "account", "address", "configuration", "host", "serves", "slot", "weight")

    def __init__(self, slot: Mapping[str, Any], account: SlotAccount, largest_budget: int) -> None:
        self.slot: str = slot["slot"]
        self.configuration: str = slot["configuration"]
        self.address: str = slot.get("address", "")
        self.host = self.address.rpartition(":")[0].strip("[]")
        self.weight: int = slot["weightMilli"]
        self.serves = bool(slot["state"] == "serving" and self.weight and self.address)
        self.account = account
        capacity = max(1, slot["budgetTokens"]) * max(1, self.weight)
        self._scale: float = largest_budget * FULL_WEIGHT / capacity
        self._seed = hash64(self.slot)

    @property
    def load(self) -> float:
        """Requests in flight, on the scale of the largest destination."""
        return (self.account.in_flight + self.account.elsewhere) * self._scale

    def affinity(self, session: int) -> int:
        """Rank of this destination for a session: the highest wins (rendezvous hashing)."""
        mixed = (session ^ self._seed) * _ODD & _MASK
        return (mixed ^ mixed >> 32) * _ODD & _MASK


def hash64(text: str) -> int:
    """64 bits that every router process agrees on."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def destinations_of(
    slots: Iterable[Mapping[str, Any]], account: Callable[[str], SlotAccount]
) -> tuple[Destination, ...]:
    """The slots of an index that are not gone."""
    present = [slot for slot in slots if slot["state"] != "gone"]
    largest = max((slot["budgetTokens"] for slot in present), default=1) or 1
    return tuple(Destination(slot, account(slot["slot"]), largest) for slot in present)
