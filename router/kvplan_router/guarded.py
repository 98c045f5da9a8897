"""The core for more than one thread: one call at a time.

In: a :class:`Router`. Out: the same methods, each under one lock. A transport may decide on a thread of its own while
the event loop installs a table or reads the state; on one event loop the lock is never waited for. Must not do
anything else: every call of the core is short.
"""

from collections.abc import Iterable, Mapping
from threading import Lock

from kvplan_router.core.decide import Router
from kvplan_router.core.in_flight import PeerReport
from kvplan_router.core.state import RouterState
from kvplan_router.core.traffic import Measurements
from kvplan_router.core.values import Decision, Released, Request, Ticket, Usage
from kvplan_solver.cacheroute.table import Index, Table


class GuardedRouter:
    """See :class:`kvplan_router.core.decide.Router` for every method."""

    def __init__(self, router: Router) -> None:
        self._router, self._lock = router, Lock()

    def decide(self, request: Request) -> Decision:
        """See the core."""
        with self._lock:
            return self._router.decide(request)

    def served(self, ticket: Ticket, address: str) -> None:
        """See the core."""
        with self._lock:
            self._router.served(ticket, address)

    def finish(self, ticket: Ticket, usage: Usage | None = None, now: float | None = None) -> bool:
        """See the core."""
        with self._lock:
            return self._router.finish(ticket, usage, now)

    def abandon(self, ticket: object, now: float) -> bool:
        """See the core."""
        with self._lock:
            return self._router.abandon(ticket, now)

    def release(self, now: float) -> list[Released]:
        """See the core."""
        with self._lock:
            return self._router.release(now)

    def install(self, index: Index, table: Table) -> None:
        """See the core."""
        with self._lock:
            self._router.install(index, table)

    def ready(self, slots: frozenset[str] | None) -> None:
        """See the core."""
        with self._lock:
            self._router.ready(slots)

    def peers(self, reports: Iterable[PeerReport], now: float) -> None:
        """See the core."""
        with self._lock:
            self._router.peers(reports, now)

    def engines(self, requests: Mapping[str, int]) -> None:
        """See the core."""
        with self._lock:
            self._router.engines(requests)

    def review_keys(self) -> None:
        """See the core."""
        with self._lock:
            self._router.review_keys()

    def state(self) -> RouterState:
        """See the core."""
        with self._lock:
            return self._router.state()

    def measurements(self) -> Measurements:
        """See the core."""
        with self._lock:
            return self._router.measurements()
