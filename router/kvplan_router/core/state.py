"""What a router process says of itself (09-contracts "Router state"). Plain values; no key, no client, no secret."""

from collections.abc import Mapping
from typing import NamedTuple

from kvplan_router.core.ledger import Order


class RouterState(NamedTuple):
    """One moment of a router process.

    Attributes:
        mode: none, observe or plan.
        order: (epoch, generation) of the index in force; (0, 0) before any.
        acknowledged: the latest one whose shares every account keeps; what the operator may build on.
        listed: whether the index gives this process a share; without one it can reserve nothing and is not ready.
        fingerprint: of the hash secret.
        in_flight: requests by slot.
        reserved: KV tokens by slot, those of requests found in engines at start included.
        limits: KV tokens this process may reserve, by slot.
        waiting: requests that wait.
        served_elsewhere: requests that another destination answered than was picked.
    """

    mode: str
    order: Order
    acknowledged: Order
    listed: bool
    fingerprint: str
    in_flight: Mapping[str, int]
    reserved: Mapping[str, int]
    limits: Mapping[str, int]
    waiting: int
    served_elsewhere: int
