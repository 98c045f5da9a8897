"""Which group moves next when there is no room: whose place a new group takes, and whether the floor bears it.

Inputs: a ``World``. Output: a ``Move``, or the reason why there is none. A new group waits for GPUs that unwanted
groups hold on its nodes; they go one after another, all for the same new group, so a half-made place is finished before
the next is begun. Of the places the floor bears, those that add capacity come first, the cheapest for the classes first
among them; those that take capacity away come last, in the opposite order: then the room for each is the largest.
Where every place needs a group to go first, that is what breaks the circle, at the cheapest class. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvplan_operator.act.engine_sets import Footprint, TargetSet
from kvplan_operator.act.observed_groups import ObservedGroup, ObservedSet
from kvplan_operator.act.world import World

Donor = tuple[ObservedSet, ObservedGroup]


@dataclass(frozen=True, eq=False)
class Move:
    """Groups that go so that another can come.

    Attributes:
        donors: that go, the next one first.
        target: that comes; None where the fleet just shrinks.
    """

    donors: tuple[Donor, ...]
    target: TargetSet | None


@dataclass(frozen=True)
class NoMove:
    """Why nothing can move.

    Attributes:
        why: in words.
        by_floor: whether the floor forbids it; otherwise GPUs are held by pods that are not the fleet's to move.
    """

    why: str
    by_floor: bool


def next_move(world: World) -> Move | NoMove | None:
    """The next move; None where every group that the plan does not want is gone or none is."""
    wanted = [target for target in world.targets.values() if world.deficit(target)]
    donors = tuple(world.all_victims())
    if not wanted:
        return _shrink(world, donors)
    moves = [move for target in wanted for move in _places(world, target, donors)]
    if not moves:
        return NoMove(_held(world, wanted[0]), by_floor=False)
    allowed = [move for move in moves if broken_by(world, (group for _, group in move.donors)) is None]
    if not allowed:
        groups = [group for _, group in moves[0].donors]
        return NoMove(str(broken_by(world, groups)), by_floor=True)
    return min(allowed, key=lambda move: _order(world, move))


def broken_by(world: World, groups: Iterable[ObservedGroup]) -> str | None:
    """The class whose floor would break if these groups went, in words; None if all keep it.

    Groups that get no requests cost nothing.
    """
    going = {group.uid for group in groups if world.serves(group)}
    if not going:
        return None
    left = Counter(
        seen.configuration
        for seen in world.sets.values()
        for group in seen.groups
        if world.serves(group) and group.uid not in going
    )
    return world.floor.broken(left)


def _shrink(world: World, donors: Sequence[Donor]) -> Move | NoMove | None:
    """Nothing is to come: the cheapest group that may go."""
    if not donors:
        return None
    allowed = [donor for donor in donors if broken_by(world, (donor[1],)) is None]
    if not allowed:
        return NoMove(str(broken_by(world, (donors[0][1],))), by_floor=True)
    return Move((min(allowed, key=lambda donor: _donor_order(world, donor)),), None)


def _places(world: World, target: TargetSet, donors: Sequence[Donor]) -> Iterator[Move]:
    """The ways to make room for one group of a target: in each place, by groups of each configuration first."""
    for footprint in world.footprints(target):
        missing = world.ledger.missing(footprint)
        near = [donor for donor in donors if not missing.keys().isdisjoint(donor[1].nodes)]
        for configuration in sorted({seen.configuration for seen, _ in near}):
            chosen = _enough(world, near, missing, configuration)
            if chosen:
                yield Move(tuple(sorted(chosen, key=lambda donor: _donor_order(world, donor))), target)


def _enough(world: World, donors: Sequence[Donor], missing: Footprint, first: str) -> list[Donor]:
    """Donors that free all missing GPUs, those of one configuration before others and the cheapest before the dear.

    Those that turn out not to be needed are left out again. Empty where all donors together do not free enough.
    """

    def order(donor: Donor) -> tuple[bool, tuple[bool, bool, float, str]]:
        return donor[0].configuration != first, _donor_order(world, donor)

    chosen: list[Donor] = []
    for donor in sorted(donors, key=order):
        if not _suffice(chosen, missing):
            chosen.append(donor)
    for donor in sorted(chosen, key=order, reverse=True):
        without = [other for other in chosen if other is not donor]
        if _suffice(without, missing):
            chosen = without
    return chosen if _suffice(chosen, missing) else []


def _suffice(donors: Sequence[Donor], missing: Footprint) -> bool:
    return all(_freed(donors, node) >= gpus for node, gpus in missing.items())


def _freed(donors: Iterable[Donor], node: str) -> int:
    return sum(seen.gpus_per_pod * group.nodes.count(node) for seen, group in donors)


def _donor_order(world: World, donor: Donor) -> tuple[bool, bool, float, str]:
    """A drain that has begun, then groups without requests, then the cheapest for the classes."""
    seen, group = donor
    return group.draining_since is None, world.serves(group), world.floor.cost({seen.configuration: 1}), group.name


def _order(world: World, move: Move) -> tuple[bool, bool, float, str]:
    """A move that has begun; then gains by what they cost first; then losses, the opposite way."""
    begun = any(group.draining_since is not None for _, group in move.donors)
    lost = world.floor.cost(Counter(seen.configuration for seen, group in move.donors if world.serves(group)))
    gained = 0.0 if move.target is None else world.floor.cost({move.target.configuration: 1})
    loses = gained < lost
    return not begun, loses, -gained if loses else lost, "" if move.target is None else move.target.name


def _held(world: World, target: TargetSet) -> str:
    """What keeps a group from coming."""
    nodes = sorted(set(target.nodes) - world.usable)
    if nodes:
        return f"{target.configuration} on {', '.join(target.nodes)}: node {nodes[0]} takes no new groups now"
    where = ", ".join(dict.fromkeys(target.nodes)) or "any node"
    return f"{target.configuration} on {where}: pods that the plan does not move hold its GPUs"
