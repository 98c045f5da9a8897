"""Commands that change how many groups a set has, with the notes that go out in the same request.

Inputs: a ``World``, a set, a number of groups. Outputs: commands. Pure.
"""

from collections.abc import Iterator, Sequence

from kvplan_operator.act.commands import Command, CreateSet, KeepNotes, ScaleSet
from kvplan_operator.act.engine_files import missing_file
from kvplan_operator.act.engine_sets import TargetSet
from kvplan_operator.act.notes import inherited, scaling_notes
from kvplan_operator.act.observed_groups import ObservedGroup, ObservedSet
from kvplan_operator.act.world import World


def grown(world: World, target: TargetSet, groups: int) -> tuple[Command, ...]:
    """A target with so many groups more; its file of flags comes first."""
    seen = world.sets.get(target.name)
    if seen is None:
        return (*missing_file(world, target), CreateSet(target, groups))
    larger = seen.replicas + groups
    notes, name = scaling_notes(seen, larger, world.snapshot.now), world.plan.metadata.name
    scale = ScaleSet(seen.reference, seen.replicas, larger, name, target.nodes, target.gpus_per_pod, notes=notes)
    return (*missing_file(world, target), scale)


def shrunk(world: World, seen: ObservedSet, replicas: int, group: ObservedGroup | None = None) -> ScaleSet:
    """A set with fewer groups; one that still runs counts as restarted."""
    restarts = group is not None and world.alive(group)
    notes = scaling_notes(seen, replicas, world.snapshot.now, restarts=restarts)
    leaving = None if group is None else group.reference
    name = world.plan.metadata.name
    return ScaleSet(seen.reference, seen.replicas, replicas, name, leaving=leaving, notes=notes)


def kept_notes(world: World, going: Sequence[ObservedSet]) -> Iterator[Command]:
    """What sets that go know of the past moves to one that stays; a fleet without any has nothing to restart."""
    staying = [world.sets[name] for name in sorted(world.targets) if name in world.sets]
    if staying and (notes := inherited(staying[0], going, world.snapshot.now)):
        yield KeepNotes(staying[0].reference, notes)
