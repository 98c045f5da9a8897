"""Whether a draining group is empty: the routers' word first, the engine's where a router is silent (09-contracts).

Inputs: the group, the published index, what routers and engines say, the time. Output: a ``Drain``: done, waiting for
something that is named, or unconfirmed. Steps: the published index takes the slot out; every live router has that
index; no router counts a request on the slot and the engine runs none. After the drain timeout requests that are left
are finished by preStop and --shutdown-timeout; a router still silent then needs the engine to run nothing. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kvplan_operator.act.observed_groups import ObservedGroup
from kvplan_operator.model.pods import Object, name_of
from kvplan_operator.model.router_sight import live_routers, staying_routers
from kvplan_operator.model.snapshot import EngineState, Fact, Quality, RouterState, Snapshot


class DrainState(StrEnum):
    """How far a drain is."""

    WAITING = "Waiting"
    DONE = "Done"
    UNCONFIRMED = "Unconfirmed"


@dataclass(frozen=True)
class Drain:
    """One look at a drain.

    Attributes:
        state: how far it is.
        waiting_for: what it waits for, or what is not confirmed.
    """

    state: DrainState
    waiting_for: str = ""


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Who can say that a group is empty.

    Attributes:
        index: the published index document; None where there is no table.
        routers: what each router that may get requests says, by name.
        engines: what each engine says, by pod uid.
        now: seconds since the epoch.
        timeout_seconds: after which requests that are left are no longer waited for.
        unasked: live routers that nobody has asked yet: new ones, or all of them after a start.
    """

    index: Object | None
    routers: Mapping[str, Fact[RouterState]]
    engines: Mapping[str, Fact[EngineState]]
    now: float
    timeout_seconds: int
    unasked: tuple[str, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, index: Object | None, timeout_seconds: int) -> "Witnesses":
        """Everybody who is there, whether or not the measurements tell of them."""
        measured, fleet = snapshot.measured, snapshot.fleet
        live = {name_of(pod) for pod in live_routers(fleet, snapshot.cluster.pods)}
        starting = {name_of(pod) for pod in staying_routers(fleet, snapshot.cluster.pods)} - live
        routers = {name: fact for name, fact in measured.routers.items() if name not in starting}
        unasked = sorted({*live, *fleet.spec.routing.routers.urls} - set(routers))
        return cls(index, routers, measured.engines, snapshot.now, timeout_seconds, tuple(unasked))

    def look(self, group: ObservedGroup) -> Drain:
        """How far the drain of a group is."""
        late = self.now - (group.draining_since or self.now) >= self.timeout_seconds
        if self._listed(group):
            return Drain(DrainState.WAITING, f"a table without {group.slot}")
        if self.unasked:  # this is over with the next measurement, and is no router's silence
            return Drain(DrainState.WAITING, f"router {self.unasked[0]} to be asked")
        silent = self._silent()
        if silent and not late:
            return Drain(DrainState.WAITING, f"router {silent[0]} to have the table")
        if silent:
            return self._by_engine(group, silent)
        left = self._left(group)
        if left and not late:
            return Drain(DrainState.WAITING, f"{left} on {group.name}")
        return Drain(DrainState.DONE)

    def _listed(self, group: ObservedGroup) -> bool:
        """Whether the published table still sends requests to it. A table that stays so is a fault elsewhere."""
        return group.in_table

    def _silent(self) -> list[str]:
        """Live routers that do not say they have the published table."""
        if self.index is None:
            return []
        wanted = (int(self.index.get("epoch", 0)), int(self.index.get("generation", 0)))
        return sorted(name for name, fact in self.routers.items() if not _has(fact, wanted))

    def _by_engine(self, group: ObservedGroup, silent: list[str]) -> Drain:
        running = self._running(group)
        if running == 0:
            return Drain(DrainState.DONE)
        known = "does not say what it runs" if running is None else f"runs {running} requests"
        return Drain(DrainState.UNCONFIRMED, f"router {silent[0]} does not have the table, and {group.name} {known}")

    def _left(self, group: ObservedGroup) -> str:
        """Requests that routers or the engine still have there, in words; a silent engine has none to tell of."""
        slot = group.slot
        states = [fact.value for fact in self.routers.values() if fact.value is not None]
        in_flight = sum(state.in_flight.get(slot, 0) for state in states if slot is not None)
        running = self._running(group) or 0
        return f"{max(in_flight, running)} requests" if in_flight or running else ""

    def _running(self, group: ObservedGroup) -> int | None:
        fact = self.engines.get(group.uid)
        if fact is None or fact.value is None or fact.quality is not Quality.VALUE:
            return None
        return fact.value.running + fact.value.waiting


def _has(fact: Fact[RouterState], wanted: tuple[int, int]) -> bool:
    return fact.value is not None and fact.quality is Quality.VALUE and fact.value.order >= wanted
