"""The step planner: from the state of the cluster alone, what to do next so that a plan comes in force.

Inputs: a Snapshot, the plan, the published index, the rules. Output: a ``RolloutStep``: commands for now, slots that
take no new requests, what is waited for, or why it cannot go on. A move is drain → shrink → the pods are gone → grow →
Ready and in the table, one group at a time, the sum of GPUs never over what a node has, every class above its floor.
Called again after every change it continues wherever things stand: it remembers nothing, so a killed operator, a
changed plan, a lost node or a pod that a person deleted are ordinary inputs. At rest it gives no commands. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvplan_operator.act.commands import Command, PatchAdopted, StartDrain
from kvplan_operator.act.observed_groups import ObservedGroup, ObservedSet
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.act.rules import RULES, Outcome
from kvplan_operator.act.targets import omitted_flags
from kvplan_operator.act.world import RolloutRules, World, look
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.pods import Object
from kvplan_operator.model.snapshot import Snapshot


@dataclass(frozen=True)
class RolloutStep:
    """What to do now.

    Attributes:
        commands: in order; empty at rest and while something is waited for.
        draining: slots that take no new requests, ``begins`` included.
        begins: those that the commands begin to drain.
        unlisted: uids of pods that have no slot and must not get one: they go before they could serve.
        step: groups that are as planned.
        steps: groups that are planned.
        waiting_for: what is waited for, in words; empty at rest.
        refusal: why it cannot go on; None otherwise.
        goes_on: whether there is something to do for the plan now, or to wait for until it is done.
        complete: whether the plan is in force.
        notes: what people should know beside that.
    """

    commands: tuple[Command, ...] = ()
    draining: frozenset[str] = frozenset()
    begins: frozenset[str] = frozenset()
    unlisted: frozenset[str] = frozenset()
    step: int = 0
    steps: int = 0
    waiting_for: str = ""
    refusal: Refusal | None = None
    goes_on: bool = False
    complete: bool = False
    notes: tuple[str, ...] = ()

    @property
    def stops_groups(self) -> bool:
        """Whether its commands begin to take a group away; otherwise they finish what has begun."""
        return any(isinstance(command, StartDrain | PatchAdopted) for command in self.commands)

    @property
    def finishes(self) -> bool:
        """Whether it brings back what was stopped, or waits for that, and stops nothing else."""
        return self.goes_on and self.refusal is None and not self.stops_groups

    @property
    def held(self) -> "RolloutStep":
        """The same while its commands may not be carried out: what they would drain goes on serving, or begins to."""
        unlisted = self.unlisted - _drained(self.commands)
        return replace(self, draining=self.draining - self.begins, begins=frozenset(), unlisted=unlisted)


def plan_rollout(
    snapshot: Snapshot,
    plan: RoutingPlan,
    index: Object | None,
    rules: RolloutRules,
    inventory: Inventory | None = None,
    observed: Sequence[ObservedSet] | None = None,
) -> RolloutStep:
    """The next step of putting a plan in force.

    Args:
        snapshot: the cluster as it is.
        plan: to put in force.
        index: the published index document; None where no table is published.
        rules: of the fleet's rollout.
        inventory: of the snapshot; None reads it off the objects.
        observed: engine sets of the snapshot; None reads them off the objects.
    """
    try:
        world = look(snapshot, plan, index, rules, inventory, observed)
        notes = _notes(world)
    except RolloutRefused as error:
        return RolloutStep(refusal=error.refusal)
    outcome = next((found for rule in RULES if (found := rule(world)) is not None), None)
    step, steps = _progress(world)
    found = outcome or Outcome(waiting_for="" if step == steps else "nodes that take no new groups now")
    drained = _drained(found.commands)
    going = _going(world, drained)
    return RolloutStep(
        commands=found.commands,
        draining=frozenset(group.slot for group in going if group.slot is not None),
        begins=frozenset(group.slot for group in going if group.slot is not None and group.uid in drained),
        unlisted=frozenset(group.uid for group in going if group.slot is None),
        step=step,
        steps=steps,
        waiting_for=found.waiting_for,
        refusal=found.refusal,
        goes_on=outcome is not None,
        complete=outcome is None and step == steps,
        notes=notes,
    )


def _drained(commands: tuple[Command, ...]) -> frozenset[str]:
    """Identities of the groups that commands begin to drain."""
    return frozenset(command.pod.uid for command in commands if isinstance(command, StartDrain))


def _going(world: World, drained: frozenset[str]) -> tuple[ObservedGroup, ...]:
    """Groups that are on their way out, or are drained as of now."""
    groups = (group for seen in world.sets.values() for group in seen.groups)
    return tuple(group for group in groups if group.uid in drained or world.goes(group))


def _progress(world: World) -> tuple[int, int]:
    """(groups as planned, groups planned)."""
    done, wanted = 0, 0
    for target in world.targets.values():
        seen = world.sets.get(target.name)
        up = 0 if seen is None else sum(world.serves(group) for group in seen.staying)
        asked = (0 if seen is None else seen.replicas) if target.replicas_external else target.replicas
        done, wanted = done + min(up, asked), wanted + asked
    return done, wanted


def _notes(world: World) -> tuple[str, ...]:
    """Flags left out, replicas that are somebody else's, and templates that somebody changed."""
    omitted = omitted_flags(world.snapshot, world.plan)
    notes = [f"this version of vLLM does not know {', '.join(omitted)}: left out"] if omitted else []
    external = [target.name for target in world.targets.values() if target.replicas_external]
    notes += [f"Deployment {name}: {ConditionReason.REPLICAS_MANAGED_EXTERNALLY.sentence}" for name in external]
    edited = [seen.name for seen in world.sets.values() if seen.edited]
    notes += [f"Deployment {name}: somebody changed its pod template: its groups are made again" for name in edited]
    return tuple(notes)
