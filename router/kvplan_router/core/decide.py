"""The router's decisions: one object, one method per event. Pure: no I/O, time given, randomness injected.

In: requests, ends of responses, tables, readiness, engine readings, peers' reports. Out: decisions and plain values.
Every arrival is counted once, with one outcome; every claim is given back once. Must not be entered by two
threads at a time: who uses threads holds a lock around each call. Source: 05-router; contracts
docs/contracts/dispatch.md and index.md.
"""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final

from kvplan_router.core.compilation import Lasting, compile_view
from kvplan_router.core.in_flight import PeerReport, acknowledged_orders, count_elsewhere
from kvplan_router.core.keys import NEED_BODY, key_of
from kvplan_router.core.ledger import NOTHING, Ledger, give_back, move, reserve
from kvplan_router.core.measure import UNMATCHED
from kvplan_router.core.placing import Placer
from kvplan_router.core.prompt_sizes import PromptSizes
from kvplan_router.core.request_id import HEADER, without_claim
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.shares import Grant, grant, owned
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.state import RouterState
from kvplan_router.core.thinning import Thinning
from kvplan_router.core.traffic import Measurements, Traffic
from kvplan_router.core.values import (
    Decision,
    NeedBody,
    Outcome,
    PassThrough,
    Pick,
    Released,
    Request,
    Shed,
    Ticket,
    Usage,
    Wait,
)
from kvplan_router.core.view import View
from kvplan_router.core.waiting import Waiter
from kvplan_solver.cacheroute.keys import fingerprint
from kvplan_solver.cacheroute.table import Index, Table

Answered = Pick | Shed | Wait | PassThrough

_NEED_BODY: Final = NeedBody()
_NO_HEADERS: Final[Mapping[str, str]] = {}


class Router:
    """Decides for one fleet in one process.

    Args:
        secret: of the key hash, 16 to 64 bytes.
        settings: of the core.
        rng: source of tie-breaks and draws.

    Raises:
        InvalidInput: the secret is too short or too long.
    """

    def __init__(self, secret: bytes, settings: CoreSettings, rng: Random) -> None:
        self._secret, self._settings = secret, settings
        self._fingerprint = fingerprint(secret)
        self._view: View | None = None
        self._installed: tuple[Index, Table] | None = None
        self._ready: frozenset[str] | None = None
        self._ledger, self._placer, self._traffic = Ledger(), Placer(settings, rng), Traffic(settings)
        self._thinnings: dict[str, Thinning] = {}
        self._sizes: dict[str, PromptSizes] = {}
        self._reports: dict[str, PeerReport] = {}
        self._served_elsewhere = 0
        self._nowhere = SlotAccount("")  # where requests are until the gateway says where it sent them

    # ---- requests

    def decide(self, request: Request) -> Decision:
        """Where one request goes. A ``NeedBody`` counts nothing; any other answer counts the arrival."""
        view = self._view
        if view is None:
            return self._without_table(request)
        class_view = view.class_of(request)
        if class_view is None:
            return _NEED_BODY
        key = key_of(class_view.key_rules, request)
        if key is NEED_BODY:
            return _NEED_BODY
        self._traffic.arrived(class_view, key, request.now)
        if not class_view.planned:
            decision: Answered = self._pass_through(request, class_view.name)
        else:
            decision = self._placer.place(view, class_view, key, request)
        if not isinstance(decision, Wait):
            class_view.meter.placed(decision.outcome)
        return decision

    def served(self, ticket: Ticket, address: str) -> None:
        """The gateway says which ``ip:port`` really answers; an unknown address changes nothing."""
        destination = self._view.by_address.get(address) if self._view else None
        if destination is not None and destination.account is not ticket.account and ticket.open:
            self._served_elsewhere += ticket.account is not self._nowhere
            self._placer.got_room((ticket.account.slot, ticket.holds.slot))
            move(ticket, destination.account)

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:
        """A response ended, for whatever reason. Idempotent: False where it had ended before.

        Args:
            ticket: of its pick.
            usage: tokens of the answer, where this one was sampled.
            now: when its last byte went by, monotonic seconds; None where nobody saw it.
        """
        if not give_back(ticket):
            return False
        self._traffic.meter(ticket.class_name).ended(usage, None if now is None else now - ticket.since)
        if usage is not None:
            self._learn(ticket, usage)
        self._placer.got_room((ticket.account.slot, ticket.holds.slot))
        return True

    def abandon(self, ticket: object, now: float) -> bool:
        """A waiting request's client left. Idempotent: False where it waits no longer."""
        return isinstance(ticket, Waiter) and self._placer.abandon(ticket, now)

    def release(self, now: float) -> list[Released]:
        """Answers for requests that waited: those that have room now, and those that are too late.

        Due after every other event, and at ``next_deadline``. Costs nothing while nobody waits.
        """
        return [] if self._view is None else self._placer.release(self._view, now)

    @property
    def next_deadline(self) -> float | None:
        """When ``release`` is due at the latest, monotonic seconds; None while nobody waits."""
        return self._placer.next_deadline

    # ---- what the router knows of the world

    def install(self, index: Index, table: Table) -> None:
        """Put a table in force. Books, counters and waiting requests stay.

        Args:
            index: checked, and not older than the one in force (``check_succession``).
            table: read from that index and its shards.
        """
        self._installed = index, table
        view = self._compiled(index, table)
        self._ledger.install(view.order, self._grants(view), view.largest)
        self._adopt(view)
        self._grow_if_acknowledged(view)

    def ready(self, slots: frozenset[str] | None) -> None:
        """Which slots' pods take requests; None: all that the index says serve."""
        self._ready = slots
        if self._installed is not None:
            self._adopt(self._compiled(*self._installed))

    def peers(self, reports: Iterable[PeerReport], now: float) -> None:
        """Count what the other processes have in flight: for load, never for the budget.

        Their acknowledgements let this process take pooled slots that were theirs.
        """
        self._reports = {r.identity: r for r in reports if r.identity != self._settings.identity}
        count_elsewhere(self._ledger.accounts, self._reports.values(), now)
        if self._view is not None:
            self._grow_if_acknowledged(self._view)

    def engines(self, requests: Mapping[str, int]) -> None:
        """Requests that engines hold, running and waiting, by slot: once before the first request, then at times.

        What no router process remembers counts as reserved until it has ended.
        """
        self._ledger.engines_hold(requests)
        self._placer.got_room(requests)

    # ---- what it tells

    def state(self) -> RouterState:
        """The state that operator and peers read."""
        view, accounts = self._view, self._ledger.accounts
        return RouterState(
            mode="none" if view is None else "plan" if view.plans else "observe",
            order=NOTHING if view is None else view.order,
            acknowledged=self._ledger.acknowledged,
            listed=view is not None and (not view.routers or view.routers.get(self._settings.identity, 0) > 0),
            fingerprint=self._fingerprint,
            in_flight={slot: account.in_flight for slot, account in accounts.items()},
            reserved={slot: account.reserved + account.leftover for slot, account in accounts.items()},
            limits={slot: account.limit for slot, account in accounts.items()},
            waiting=len(self._placer),
            served_elsewhere=self._served_elsewhere,
        )

    def measurements(self) -> Measurements:
        """Counters and histograms."""
        return self._traffic.values()

    def review_keys(self) -> None:
        """Let keys enter and leave the counted set; once per table interval is enough."""
        self._traffic.review_keys()

    # ---- without a plan

    def _without_table(self, request: Request) -> PassThrough:
        meter = self._traffic.meter(UNMATCHED)
        meter.arrived(request.now)
        meter.placed(Outcome.UNPLANNED)
        return self._pass_through(request, UNMATCHED)

    def _pass_through(self, request: Request, class_name: str) -> PassThrough:
        """Leave the choice to the gateway, but never hand on a claim that no ledger made."""
        given = request.headers.get(HEADER, "")
        own = without_claim(given)
        ticket = reserve(self._nowhere, 0, class_name, request.now, request.size)
        return PassThrough(_NO_HEADERS if own == given else {HEADER: own}, ticket)

    # ---- tables

    def _compiled(self, index: Index, table: Table) -> View:
        lasting = Lasting(self._ledger.account, self._traffic.meter, self._thinning, self._sizes_of)
        return compile_view(index, table, self._ready, lasting, self._settings, self._secret)

    def _grants(self, view: View) -> dict[str, Grant]:
        identity = self._settings.identity
        return {
            slot: owned(budget, view.owners[slot], identity)
            if slot in view.owners
            else grant(budget, view.largest[slot], view.routers, identity, slot)
            for slot, budget in view.budgets.items()
        }

    def _thinning(self, class_name: str) -> Thinning:
        return self._thinnings.setdefault(class_name, Thinning())

    def _learn(self, ticket: Ticket, usage: Usage) -> None:
        """Prompts of that size may look shorter from now on, so that others who wait have room, wherever they wait."""
        if self._sizes_of(ticket.class_name).learn(ticket.size, usage.prompt_tokens) and self._view is not None:
            self._placer.got_room(self._view.serving)

    def _sizes_of(self, class_name: str) -> PromptSizes:
        return self._sizes.setdefault(class_name, PromptSizes())

    def _adopt(self, view: View) -> None:
        self._view = view
        for class_view in (*view.by_name.values(), view.unmatched):
            class_view.meter.use_grids(view.grids)
        self._placer.follow(view)

    def _grow_if_acknowledged(self, view: View) -> None:
        ledger, identity = self._ledger, self._settings.identity
        reports = self._reports.values()
        if ledger.all_run(acknowledged_orders(view.routers, identity, ledger.acknowledged, reports)):
            self._placer.got_room(view.serving)
