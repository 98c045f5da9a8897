"""What other router processes have in flight, for load and never for the budget. Pure state.

In: vectors that peers send at 5 Hz or more. Out: ``elsewhere`` of every account, and what peers acknowledged. A peer
silent for a second leaves the sum. Source: 05-router §4.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvplan_router.core.ledger import NOTHING, Order
from kvplan_router.core.slot_account import SlotAccount

SILENT_AFTER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PeerReport:
    """What one peer says of itself.

    Attributes:
        identity: as in the index's ``routers``.
        in_flight: its requests by slot.
        acknowledged: (epoch, generation) it keeps to.
        heard: monotonic seconds of this process when the report arrived.
    """

    identity: str
    in_flight: Mapping[str, int]
    acknowledged: Order
    heard: float


def count_elsewhere(accounts: Mapping[str, SlotAccount], reports: Iterable[PeerReport], now: float) -> None:
    """Set every account's ``elsewhere`` from the reports that are fresh."""
    totals: dict[str, int] = {}
    for report in reports:
        if now - report.heard <= SILENT_AFTER_SECONDS:
            for slot, count in report.in_flight.items():
                totals[slot] = totals.get(slot, 0) + count
    for slot, account in accounts.items():
        account.elsewhere = totals.get(slot, 0)


def acknowledged_orders(
    routers: Iterable[str], identity: str, own: Order, reports: Iterable[PeerReport]
) -> tuple[Order, ...]:
    """What every listed process acknowledged; nothing for one never heard of."""
    known = {report.identity: report.acknowledged for report in reports} | {identity: own}
    return tuple(known.get(name, NOTHING) for name in routers)
