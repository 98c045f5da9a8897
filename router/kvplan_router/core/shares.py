"""How many tokens of a slot's budget this process may reserve. Pure.

Two ways to divide Q among the processes that the index lists, the same for all of them:

* by share: floor(Q · shareMilli / 1000) each, while every share has room for the largest reservation;
* pooled: otherwise fewer processes own the slot, m = floor(Q / largest) of them with floor(Q / m) each. The owners
  are the first m by a hash of slot and identity, so all processes agree without a word.

A share grows only after its former owner acknowledged the smaller one: the operator sees to that for shares
(docs/contracts/index.md). Who owns a pooled slot follows from the list and from Q and the largest reservation
as well, so there a process takes more than it had only when every listed process runs this index.
Source: 05-router §4.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

ALL_MILLI = 1000


class Grant(NamedTuple):
    """What a process may reserve on one slot.

    Attributes:
        tokens: of the slot's budget.
        pooled: whether an increase must wait until every listed process runs the same index.
    """

    tokens: int
    pooled: bool


def grant(budget: int, largest: int, routers: Mapping[str, int], identity: str, slot: str) -> Grant:
    """The part of one slot's budget that belongs to one process.

    Args:
        budget: Q, tokens.
        largest: largest R̃ that any class reserves on the slot, tokens.
        routers: shareMilli by identity; none listed means a single process, and a process not listed owns nothing.
        identity: of the process.
        slot: name of the slot.
    """
    if not routers:
        return Grant(budget, pooled=False)
    mine = routers.get(identity, 0)
    smallest = min((milli for milli in routers.values() if milli), default=0)
    if len(routers) == 1 or budget < largest or budget * smallest // ALL_MILLI >= largest:
        return Grant(budget * mine // ALL_MILLI, pooled=False)
    return Grant(_pooled(budget, largest, routers, identity, slot) if mine else 0, pooled=True)


def owned(budget: int, owners: Mapping[str, int], identity: str) -> Grant:
    """The part of a slot whose owners the index names itself, because a share for each would be too small.

    Args:
        budget: Q, tokens.
        owners: shareMilli by identity.
        identity: of the process.
    """
    return Grant(budget * owners.get(identity, 0) // ALL_MILLI, pooled=False)


def _pooled(budget: int, largest: int, routers: Mapping[str, int], identity: str, slot: str) -> int:
    owners = min(len(routers), budget // largest)
    ranked = sorted(routers, key=lambda name: (_rank(slot, name), name))
    return budget // owners if identity in ranked[:owners] else 0


def _rank(slot: str, identity: str) -> bytes:
    return hashlib.blake2b(f"{slot}\n{identity}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
