"""The rules of a rollout: each looks at the world and says what to do about one thing, or nothing.

Inputs: a ``World``. Outputs: an ``Outcome`` or None. The order of ``RULES`` is the order of a move: undo, begin, wait
for what goes, end what is empty, wait for what comes, patch, grow, make room, sweep. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kvplan_operator.act.adopted import needs_patch
from kvplan_operator.act.commands import (
    Command,
    DeleteConfig,
    DeleteSet,
    PatchAdopted,
    StartDrain,
    StopDrain,
    reference,
)
from kvplan_operator.act.drain import DrainState
from kvplan_operator.act.engine_files import missing_file, unread_files
from kvplan_operator.act.engine_sets import TargetSet
from kvplan_operator.act.moves import Move, NoMove, broken_by, next_move
from kvplan_operator.act.notes import patched
from kvplan_operator.act.observed_groups import ObservedGroup, ObservedSet
from kvplan_operator.act.refusals import refusal
from kvplan_operator.act.scaling import grown, kept_notes, shrunk
from kvplan_operator.act.world import World
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.gate.verdict import Refusal


@dataclass(frozen=True)
class Outcome:
    """What one rule says.

    Attributes:
        commands: for now, in order.
        waiting_for: what is waited for, in words.
        refusal: why it cannot go on.
    """

    commands: tuple[Command, ...] = ()
    waiting_for: str = ""
    refusal: Refusal | None = None


def _keep_wanted(world: World) -> Outcome | None:
    """A drain that no longer has a reason ends: the plan changed, or another pod went in its place."""
    kept = [
        StopDrain(group.reference)
        for seen in world.sets.values()
        for group in seen.staying
        if group.draining_since is not None and group.uid not in world.unwanted_uids
    ]
    return Outcome(tuple(kept), f"{kept[0].pod.name} back in the table") if kept else None


def _begin(world: World) -> Outcome | None:
    """Where no plan was in force and no created group has to go, all that fits comes at once."""
    if world.before is not None or any(world.surplus(seen) for seen in world.sets.values()):
        return None
    free = {node: world.ledger.free(node) for node in world.usable}
    commands: list[Command] = []
    for target in world.targets.values():
        fitting = 0
        while not target.adopted and fitting < world.deficit(target) and _take(free, target):
            fitting += 1
        if fitting:
            commands += grown(world, target, fitting)
    return Outcome(tuple(commands), "the first groups to be Ready") if commands else None


def _leaving(world: World) -> Outcome | None:
    """Pods that were told to go hold their GPUs until they are gone; those of a lost node are not waited for."""
    for seen in world.sets.values():
        if seen.goes:
            return Outcome(waiting_for=f"{seen.kind} {seen.name} to be gone")
        for group in seen.groups:
            if group.leaving and all(world.nodes.get(node) for node in group.nodes if node):
                return _going(world, group)
        if len(seen.staying) > seen.replicas:
            return Outcome(waiting_for=f"{seen.name} to shrink to {seen.replicas}")
    return None


def _arriving(world: World) -> Outcome | None:
    """Groups that are wanted get ready before the next one moves."""
    for seen in world.sets.values():
        if seen.nodes and not set(seen.nodes) <= world.usable:
            continue
        unwanted = {group.uid for group in world.victims(seen)}
        for group in seen.staying:
            if group.uid not in unwanted and group.draining_since is None and not world.serves(group):
                return _unready(world, group)
        if seen.rolls:
            return Outcome(waiting_for=f"Deployment {seen.name} to replace its pods")
        if len(seen.staying) < seen.replicas and not world.surplus(seen):
            return Outcome(waiting_for=f"{seen.name} to have {seen.replicas} pods")
    return None


def _empty(world: World) -> Outcome | None:
    """A group that is drained goes; one that does not run, or has no pods yet, goes at once."""
    for seen in world.sets.values():
        missing = world.surplus(seen) - len(world.victims(seen))
        if missing > 0:
            return Outcome((shrunk(world, seen, seen.replicas - missing),), f"{seen.name} to shrink")
    for seen, group in world.all_victims():
        if group.draining_since is None and world.alive(group):
            continue
        outcome = _end(world, seen, group)
        if outcome is not None:
            return outcome
    return None


def _grow_into_room(world: World) -> Outcome | None:
    """A new group where its GPUs are free."""
    for target in world.targets.values():
        if world.deficit(target) and any(not world.ledger.missing(place) for place in world.footprints(target)):
            return Outcome(grown(world, target, 1), f"a group of {target.configuration} to be Ready")
    return None


def _patch(world: World) -> Outcome | None:
    """Other flags for an adopted Deployment: Kubernetes replaces its pods one by one, so one of them may be away."""
    for target in world.targets.values():
        seen = world.sets.get(target.name)
        if seen is None or not target.adopted or not needs_patch(target, seen.item):
            continue
        wrong = broken_by(world, seen.staying[:1])
        if wrong is not None and world.deficit(target):
            continue  # with the groups that are to come, one may be away
        if wrong is not None:
            return _stuck(NoMove(f"Deployment {seen.name}: {wrong}", by_floor=True))
        running = sum(world.alive(group) for group in seen.staying)
        patch = PatchAdopted(seen.reference, patched(target, seen, running, world.snapshot.now))
        return Outcome((*missing_file(world, target), patch), f"Deployment {seen.name} to roll")
    return None


def _make_room(world: World) -> Outcome | None:
    """Take the next group away, for a new one or because the fleet shrinks."""
    move = next_move(world)
    if move is None:
        return None
    if isinstance(move, NoMove):
        return _stuck(move)
    return _start(world, move)


def _sweep(world: World) -> Outcome | None:
    """Empty sets that the plan does not want, and files that no set reads, go at the end."""
    going = [
        seen
        for seen in world.sets.values()
        if not (seen.adopted or seen.name in world.targets or seen.replicas or seen.groups or seen.goes)
    ]
    commands: list[Command] = [*kept_notes(world, going), *(DeleteSet(seen.reference) for seen in going)]
    commands += [DeleteConfig(reference(item, "ConfigMap")) for item in unread_files(world)]
    return Outcome(tuple(commands), "what is left over to be deleted") if commands else None


RULES: tuple[Callable[[World], Outcome | None], ...] = (
    _keep_wanted,
    _begin,
    _leaving,
    _empty,
    _arriving,
    _patch,
    _grow_into_room,
    _make_room,
    _sweep,
)
"""In this order; the first that has something to say decides."""


def _going(world: World, group: ObservedGroup) -> Outcome:
    what, due = f"{group.name} to be gone", group.due
    if due is None or world.snapshot.now - due < world.rules.deadline_seconds:
        return Outcome(waiting_for=what)
    message = (
        f"pod {group.name} is still there {world.rules.deadline_seconds} s after its grace period: look at its node"
    )
    return Outcome((), what, refusal(ConditionReason.DEADLINE_EXCEEDED, message))


def _unready(world: World, group: ObservedGroup) -> Outcome:
    if group.ready:
        return Outcome(waiting_for=f"{group.name} to be in the table")
    what = f"{group.name} to be Ready" + (f" ({group.trouble})" if group.trouble else "")
    since = group.unready_since
    if since is None or world.snapshot.now - since < world.rules.deadline_seconds:
        return Outcome(waiting_for=what)
    message = f"pod {group.name} is not Ready after {world.rules.deadline_seconds} s"
    remedy = "read its log, then mend the template or accept another plan"
    trouble = f" ({group.trouble})" if group.trouble else ""
    return Outcome((), what, refusal(ConditionReason.DEADLINE_EXCEEDED, f"{message}{trouble}: {remedy}"))


def _end(world: World, seen: ObservedSet, group: ObservedGroup) -> Outcome | None:
    """Shrink a set by a group that is empty, or say what that waits for."""
    if world.alive(group):
        drain = world.witnesses.look(group)
        if drain.state is DrainState.WAITING:
            return Outcome(waiting_for=drain.waiting_for)
        if drain.state is DrainState.UNCONFIRMED:
            message = f"{drain.waiting_for}: restart the router or delete the pod {group.name}"
            return Outcome(refusal=refusal(ConditionReason.DRAIN_UNCONFIRMED, message))
    return Outcome((shrunk(world, seen, seen.replicas - 1, group),), f"{group.name} to be gone")


def _start(world: World, move: Move) -> Outcome:
    """Drain the next group; those that do not run are gone by now."""
    _, group = move.donors[0]
    return Outcome((StartDrain(group.reference, int(world.snapshot.now)),), f"{group.name} to be out of the table")


def _stuck(move: NoMove) -> Outcome:
    if move.by_floor:
        remedy = "lower spec.rollout.minAvailableMilli, add a node, or accept another plan"
        return Outcome(refusal=refusal(ConditionReason.NO_CAPACITY_NEUTRAL_PATH, f"{move.why}: {remedy}"))
    return Outcome((), move.why, refusal(ConditionReason.INVENTORY_CHANGED, move.why, stalled=False))


def _take(free: dict[str, int], target: TargetSet) -> bool:
    """Take a group's GPUs from what is free, if they are."""
    if any(free.get(node, 0) < gpus for node, gpus in target.footprint.items()):
        return False
    for node, gpus in target.footprint.items():
        free[node] -= gpus
    return True
