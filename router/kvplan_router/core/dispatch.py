"""Where a request goes: the four rows of docs/contracts/dispatch.md, version 1, within the reservation ledger. Pure.

In: class, home of the key, session, what a subset hint allows. Out: :class:`Placement`: destinations in order
and whether the first has room. A key never leaves its home while that serves, unless its class says so
(``shed: other``): overflow cools the home, which slows it, which causes more overflow. Must not: reserve.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

from kvplan_router.core.destination import Destination
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.values import Outcome
from kvplan_router.core.view import ClassView, Need, ServingHome

DRAWS = 4
"""Draws for a second destination, different from the first."""


LOOKS = 32
"""Destinations looked at for room when both draws are full: enough to find some, and bounded in a full fleet."""


class Placement(NamedTuple):
    """What dispatch says.

    Attributes:
        order: destinations, the best first.
        outcome: which row of the contract was used.
        has_room: whether the first one has room for the reservation; otherwise it is the one to wait for.
    """

    order: Sequence[Destination]
    outcome: Outcome
    has_room: bool


class Asked(NamedTuple):
    """What dispatch needs to know of a request.

    Attributes:
        class_view: its class.
        home: what serves of its key's home; None for the cold tail.
        session: hash of its session; None without one.
        serving: destinations that may be used, by slot.
        restricted: whether a subset hint leaves some out.
        size: bytes of its body; 0: not known.
        need: what of the planned reservation it needs.
    """

    class_view: ClassView
    home: ServingHome | None
    session: int | None
    serving: Mapping[str, Destination]
    restricted: bool
    size: int
    need: Need

    def tokens(self, destination: Destination) -> int:
        """What it reserves there."""
        return self.class_view.tokens(destination, self.need)


class Dispatcher:
    """The rules, with their settings and their source of randomness."""

    __slots__ = ("_rng", "_settings")

    def __init__(self, settings: CoreSettings, rng: Random) -> None:
        self._settings, self._rng = settings, rng

    def place(self, asked: Asked) -> Placement | None:
        """Where it goes; None where nothing that it may use serves."""
        planned = None if asked.home is None else self._at_home(asked, asked.home)
        if planned is None:
            return self._cold(asked)
        if planned.has_room or not (asked.class_view.overflows or self._out_of_reach(planned, asked)):
            return planned
        elsewhere = self._cold(asked)
        return elsewhere if elsewhere is not None and elsewhere.has_room else planned

    @staticmethod
    def _out_of_reach(placement: Placement, asked: Asked) -> bool:
        """Whether this process can never reserve there: other processes own those slots."""
        tokens = asked.tokens
        return all(d.account.limit < tokens(d) for d in placement.order)

    def _at_home(self, asked: Asked, home: ServingHome) -> Placement | None:
        members, backup, order = home
        if len(members) > 1:
            return _with_room(self._ordered(members, asked.session), asked, Outcome.PLANNED)
        if members:
            room = members[0].account.has_room(asked.tokens(members[0]))
            return Placement(order if room else members, Outcome.PLANNED, room)  # a backup is not considered for room
        return None if backup is None else _with_room(order, asked, Outcome.BACKUP)

    def _ordered(self, members: Sequence[Destination], session: int | None) -> list[Destination]:
        """The session's member first unless it is much busier than the least-loaded one, which is first otherwise."""
        random = self._rng.random
        by_load = sorted([(d.load, random(), n) for n, d in enumerate(members)])
        ordered = [members[n] for _, _, n in by_load]
        if session is None or not self._settings.session_hash:
            return ordered
        ranks = [d.affinity(session) for d in ordered]
        own = ranks.index(max(ranks))
        if by_load[own][0] <= self._settings.busier_factor * by_load[0][0] + self._settings.busier_margin:
            ordered.insert(0, ordered.pop(own))
        return ordered

    def _cold(self, asked: Asked) -> Placement | None:
        """Power of two choices by route shares; where neither has room, another that has."""
        drawn = self.two(asked)
        if not drawn:
            return None
        outcome = Outcome.SUBSET if asked.restricted else Outcome.COLD
        placement = _with_room(drawn, asked, outcome)
        if placement.has_room:
            return placement
        tokens = asked.tokens
        looked_at = islice(self._members(asked), LOOKS)
        spare = next((d for d in looked_at if d.account.has_room(tokens(d))), None)
        return placement if spare is None else Placement([spare, *drawn], outcome, has_room=True)

    def two(self, asked: Asked) -> list[Destination]:
        """Two destinations drawn by the class's route shares, the less loaded first; fewer where there are fewer."""
        class_view = asked.class_view
        if asked.restricted:
            return self._two_of([d for d in class_view.members if d.slot in asked.serving])
        if not class_view.members:
            return []
        rng = self._rng
        first = second = class_view.draw(rng)
        if len(class_view.members) > 1:
            for _ in range(DRAWS):
                second = class_view.draw(rng)
                if second is not first:
                    break
        if second is first:
            return [first]
        return [second, first] if second.load < first.load else [first, second]

    def and_another(self, first: Destination, asked: Asked) -> Sequence[Destination]:
        """A destination, and the less loaded one of two others for retries; alone where there is none."""
        for other in self.two(asked):
            if other is not first:
                return first, other
        return (first,)

    def _two_of(self, members: list[Destination]) -> list[Destination]:
        drawn = self._rng.sample(members, min(2, len(members)))
        return sorted(drawn, key=lambda d: d.load)

    def _members(self, asked: Asked) -> Iterator[Destination]:
        """Every destination it may use, starting anywhere."""
        members = asked.class_view.members
        start = self._rng.randrange(len(members))
        around = (members[(start + n) % len(members)] for n in range(len(members)))
        return (d for d in around if d.slot in asked.serving) if asked.restricted else around


def _with_room(members: Sequence[Destination], asked: Asked, outcome: Outcome) -> Placement:
    """Members in order, the first one with room moved to the front."""
    tokens = asked.tokens
    for destination in members:
        if destination.account.has_room(tokens(destination)):
            if destination is not members[0]:
                members = [destination, *(d for d in members if d is not destination)]
            return Placement(members, outcome, True)
    within_reach = sorted(members, key=lambda d: d.account.limit < tokens(d))  # stable: the order stays otherwise
    return Placement(within_reach, outcome, has_room=False)
