"""Which router processes there are, and which of them have the newest index (09-contracts "Router state").

Inputs: the snapshot's pods and router states. Outputs: frozen ``RouterProcess`` values, an ``Acknowledgement``
with the sentence that people read, and who is about to join. A router that says nothing has acknowledged nothing. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.model.pods import is_ready, is_terminal, is_terminating, labels_of, name_of, part
from kvplan_operator.model.selectors import selects
from kvplan_operator.model.snapshot import RouterState, Snapshot
from kvplan_solver.cacheroute.keys import fingerprint, weak_secret

_NAMED = 5
"""Routers that a message names at most."""


@dataclass(frozen=True, eq=False)
class RouterProcess:
    """One router of the fleet.

    Attributes:
        source: its pod's name, or its URL.
        identity: as the index names it; None for a URL that never answered.
        live: whether requests come to it: a Ready pod that stays, or a listed URL.
        leaving: whether it was told to go; it keeps what it has until it is gone.
        state: what it said last; None where it never did.
    """

    source: str
    identity: str | None
    live: bool
    leaving: bool = False
    state: RouterState | None = None

    def has(self, order: tuple[int, int]) -> bool:
        """Whether it acknowledged an index at least as new."""
        return self.state is not None and self.state.order >= order


@dataclass(frozen=True)
class Acknowledgement:
    """Who has an index.

    Attributes:
        order: (epoch, generation) asked about.
        live: how many live routers there are.
        behind: live routers that report an older one.
        silent: live routers that never answered.
        refused: indexes that routers refused since they started, by router.
    """

    order: tuple[int, int]
    live: int
    behind: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def everyone(self) -> bool:
        """Whether every live router has it; true where there is none."""
        return not (self.behind or self.silent)

    @property
    def message(self) -> str:
        """One sentence, without numbers that change at rest."""
        generation = f"generation {self.order[1]}"
        if not self.live:
            return f"No live router: no Ready pod matches routing.routers.selector; {generation} is published."
        if self.everyone:
            return f"Every live router ({self.live}) has {generation}."
        refusing = tuple(name for name in self.behind if self.refused.get(name))
        parts = (
            (self.behind, f"{{}} still below {generation}"),
            (self.silent, "{} silent: check GET /state on the metrics port"),
            (refusing, "{} refusing indexes: see kvplan doctor"),
        )
        return "; ".join(text.format(_names(names)) for names, text in parts if names) + "."


def router_processes(snapshot: Snapshot) -> tuple[RouterProcess, ...]:
    """Every router process that may run, by name."""
    return (*sorted(_pods(snapshot), key=lambda router: router.source), *_urls(snapshot))


def acknowledgement(routers: Sequence[RouterProcess], order: tuple[int, int]) -> Acknowledgement:
    """Who among the live routers has an index."""
    live = [router for router in routers if router.live]
    return Acknowledgement(
        order=order,
        live=len(live),
        behind=tuple(router.source for router in live if router.state is not None and not router.has(order)),
        silent=tuple(router.source for router in live if router.state is None),
        refused={router.source: router.state.table_errors for router in live if router.state is not None},
    )


def starting(routers: Sequence[RouterProcess], shares: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Processes that wait to be named in the index, or that have not said under which name.

    Args:
        routers: the processes.
        shares: ``routers`` of the index in force.
    """
    named = {entry["identity"] for entry in shares if entry["shareMilli"]}
    staying = (router for router in routers if not router.leaving)
    return tuple(router.source for router in staying if router.state is None or router.identity not in named)


def common_fingerprint(routers: Sequence[RouterProcess], before: str) -> str:
    """Fingerprint of the hash secret that most routers have; the one before where they tie, or none says.

    Args:
        routers: the processes.
        before: what the index in force names; empty without one.
    """
    said = Counter(router.state.fingerprint for router in routers if router.state and router.state.fingerprint)
    if not said:
        return before
    most = max(said.values())
    candidates = sorted(name for name, times in said.items() if times == most)
    return before if before in candidates else candidates[0]


def weak_fingerprint(fleet: ServingFleet) -> str:
    """Fingerprint of what stands in for a hash secret where the routers have none."""
    return fingerprint(weak_secret(fleet.metadata.uid or ""))


def hashes_weakly(routers: Sequence[RouterProcess], fleet: ServingFleet) -> bool:
    """Whether a router said that it hashes under the fleet's uid."""
    weak = weak_fingerprint(fleet)
    return any(router.state is not None and router.state.fingerprint == weak for router in routers)


def _pods(snapshot: Snapshot) -> Iterator[RouterProcess]:
    fleet = snapshot.fleet
    selector = fleet.spec.routing.routers.selector
    for pod in snapshot.cluster.pods:
        namespace = part(pod, "metadata").get("namespace", "default")
        if namespace != fleet.metadata.namespace or is_terminal(pod) or not selects(selector, labels_of(pod)):
            continue
        name, leaving = name_of(pod), is_terminating(pod)
        state = _state(snapshot, name)
        identity = state.identity if state else name
        yield RouterProcess(name, identity, is_ready(pod) and not leaving, leaving, state)


def _urls(snapshot: Snapshot) -> Iterator[RouterProcess]:
    for url in snapshot.fleet.spec.routing.routers.urls:
        state = _state(snapshot, url)
        yield RouterProcess(url, state.identity if state else None, live=True, state=state)


def _state(snapshot: Snapshot, source: str) -> RouterState | None:
    """The last thing a router said; generations only grow, so an old answer still holds."""
    fact = snapshot.measured.routers.get(source)
    return None if fact is None else fact.value


def _names(names: Sequence[str]) -> str:
    """``a is``, ``a, b are``."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more} {'is' if len(names) == 1 else 'are'}"
