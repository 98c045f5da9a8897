"""The reservation ledger: tokens in, tokens out, exactly once; and the limits it keeps. Pure state.

In: reservations, ends of requests, what engines run at start, new grants, acknowledgements. Out: accounts that
never hold more than their share. Must not: let a reservation pass a limit, or give a token back twice.
Source: 05-router §4; Σ R̃ ≤ Q over all processes.
"""

from collections.abc import Iterable, Mapping

from kvplan_router.core.shares import Grant
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Ticket

Order = tuple[int, int]
NOTHING: Order = (0, 0)
"""Before any index."""


def reserve(account: SlotAccount, tokens: int, class_name: str, since: float, size: int) -> Ticket:
    """Claim a slot for a request of ``size`` bytes that arrived at ``since``; the caller has checked that it fits."""
    account.reserved += tokens
    account.in_flight += 1
    return Ticket(account, tokens, class_name, since, size)


def give_back(ticket: Ticket) -> bool:
    """End a claim. Idempotent: False where it had ended before."""
    if not ticket.open:
        return False
    ticket.open = False
    ticket.account.in_flight -= 1
    ticket.holds.reserved -= ticket.tokens
    return True


def move(ticket: Ticket, served: SlotAccount) -> None:
    """Another slot answered than was picked: count the request there.

    The tokens follow only where they fit; otherwise they stay where they are until the end, so that no slot's
    ledger passes its limit.
    """
    if not ticket.open or ticket.account is served:
        return
    ticket.account.in_flight -= 1
    served.in_flight += 1
    ticket.account = served
    if served.fits(ticket.tokens):
        ticket.holds.reserved -= ticket.tokens
        served.reserved += ticket.tokens
        ticket.holds = served


class Ledger:
    """The accounts of all slots, by name, and the order up to which their limits hold.

    Attributes:
        accounts: by slot; kept over table swaps, dropped when the slot is gone and idle.
        acknowledged: (epoch, generation) of the latest index under whose shares every account stays. A share may
            move to another process only when this has reached the index that took it away.
    """

    def __init__(self) -> None:
        self.accounts: dict[str, SlotAccount] = {}
        self._grants: Mapping[str, Grant] = {}
        self._largest: Mapping[str, int] = {}
        self._leftover_requests: dict[str, int] = {}
        self._careful: set[str] = set()  # slots whose limit may grow only when every process runs the index
        self._order = NOTHING
        self._acknowledged = NOTHING

    @property
    def acknowledged(self) -> Order:
        """See the class."""
        if self._acknowledged != self._order and all(self.accounts[slot].within_limit for slot in self._grants):
            self._acknowledged = self._order
        return self._acknowledged

    def account(self, slot: str) -> SlotAccount:
        """The account of a slot, opened on first use."""
        found = self.accounts.get(slot)
        if found is None:
            found = self.accounts[slot] = SlotAccount(slot)
        return found

    def install(self, order: Order, grants: Mapping[str, Grant], largest: Mapping[str, int]) -> None:
        """Put new limits in force: less at once, more as :mod:`shares` says.

        Args:
            order: (epoch, generation) of the index they come from.
            grants: by slot; a slot that is not named may hold nothing new.
            largest: largest R̃ by slot, tokens.
        """
        self._grants, self._largest, self._order = grants, largest, order
        self._careful.update(slot for slot, granted in grants.items() if granted.pooled)
        for slot in grants:
            self.account(slot)
        for slot, account in list(self.accounts.items()):
            granted = grants[slot].tokens if slot in grants else 0
            account.limit = min(account.limit, granted) if slot in self._careful else granted
            self._count_leftover(account)
            if slot not in grants and account.idle:
                del self.accounts[slot]

    def all_run(self, orders: Iterable[Order]) -> bool:
        """Take what the index grants if every listed process, by these acknowledged orders, keeps to it too."""
        if any(order < self._order for order in orders):
            return False
        for slot, granted in self._grants.items():
            self.accounts[slot].limit = granted.tokens
        self._careful = {slot for slot, granted in self._grants.items() if granted.pooled}
        return True

    def engines_hold(self, requests: Mapping[str, int]) -> None:
        """Count requests that engines hold and nobody remembers; to be called at start, and then until none is left.

        At start every request an engine holds counts as one of the largest reservation in force; one that was made
        under a larger one counts for too little until it ends. Later readings, less the requests that router
        processes know of, can only lower that: take them right after the peers' reports.

        Args:
            requests: running and waiting in the engine, by slot.
        """
        for slot, held in requests.items():
            account = self.account(slot)
            unknown = max(0, held - account.in_flight - account.elsewhere)
            self._leftover_requests[slot] = min(unknown, self._leftover_requests.get(slot, unknown))
            self._count_leftover(account)

    def _count_leftover(self, account: SlotAccount) -> None:
        requests = self._leftover_requests.get(account.slot, 0)
        account.leftover = requests * self._largest.get(account.slot, 0)
