"""What is done in one look: the plan pursued, the gate's word, the next step of the rollout. Pure.

Inputs: the snapshot, the ``Ground``, the ``Plans``, the published index. Output: a frozen ``Decided``. Where the gate
refuses a new plan, the one in force goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvplan_operator.act.observed_groups import ObservedSet
from kvplan_operator.act.observed_sets import observed_sets
from kvplan_operator.act.rollout import RolloutStep, plan_rollout
from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.gate.chain import in_force, judge
from kvplan_operator.gate.gather import gate_input
from kvplan_operator.gate.verdict import Verdict
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.choice import Choice, Standing, choose
from kvplan_operator.plan.rollback import Return, return_of
from kvplan_operator.reconcile.ground import Ground
from kvplan_operator.reconcile.shelving import Plans
from kvplan_operator.status.said import Progress

CRASH_REASON = "CrashLoopBackOff"


@dataclass(frozen=True, eq=False)
class Decided:
    """What is done now.

    Attributes:
        choice: the plan pursued.
        verdict: the gate's word on it; None where nothing is pursued.
        in_force: digest of the plan in force after this look.
        new: whether that is another one than before: it is written down before anything is done for it.
        step: of its rollout, begun drains left out where it may not act; None where no plan is in force.
        may_act: whether the step's commands may be carried out.
        returning: what is to be done about worse service; None where there is none.
        sets: engine sets that exist.
    """

    choice: Choice
    verdict: Verdict | None
    in_force: str | None
    new: bool
    step: RolloutStep | None
    may_act: bool
    returning: Return | None
    sets: tuple[ObservedSet, ...]

    @property
    def held(self) -> "Decided":
        """The same decision, where nothing may be carried out."""
        return replace(self, may_act=False, step=None if self.step is None else self.step.held)

    @property
    def moves(self) -> bool:
        """Whether a rollout goes on by itself: what is held or refused waits for people, the clock or the cluster."""
        step = self.step
        return self.may_act and step is not None and step.goes_on and step.refusal is None

    @property
    def progress(self) -> Progress | None:
        """The step as statuses tell of it."""
        if self.step is None:
            return None
        step = self.step
        return Progress(step.step, step.steps, step.waiting_for, step.complete, step.refusal)


def decide(snapshot: Snapshot, ground: Ground, plans: Plans, index: Mapping[str, Any] | None) -> Decided:
    """One look's decision."""
    shelf, sets = plans.shelf, observed_sets(snapshot.cluster, snapshot.fleet, index)
    crashing = sum(group.trouble.startswith(CRASH_REASON) for seen in sets for group in seen.groups)
    returning = return_of(shelf, ground.inputs_digest, snapshot.now, crashing=crashing)
    choice = choose(snapshot.fleet.spec.plan_policy.mode, shelf, plans.judged, returning)
    looks = _Looks(snapshot, ground, plans, index, sets)
    verdict = looks.verdict(choice)
    follows = in_force(shelf.current, verdict)
    new = follows != shelf.current
    allowed = verdict if choice.target == follows else looks.verdict(_staying(choice, plans))
    step = None if follows is None else looks.step(follows)
    may_act = not new and allowed is not None and lets(allowed, step)
    decided = Decided(choice, verdict, follows, new, step, may_act, returning, sets)
    return decided if may_act else decided.held


def lets(verdict: Verdict, step: RolloutStep | None) -> bool:
    """A spent restart budget lets no further group stop; what was stopped before comes back without waiting for it."""
    if verdict.refusal is None or verdict.refusal.reason is not ConditionReason.RESTART_BUDGET_SPENT:
        return verdict.go
    return step is not None and not step.stops_groups


def _staying(choice: Choice, plans: Plans) -> Choice:
    """The plan in force goes on."""
    current = plans.shelf.current
    standing = None if current is None else Standing.IN_FORCE
    return replace(choice, target=current, standing=standing, accepted=current == plans.shelf.accepted)


class _Looks:
    """Steps and verdicts of one look, each step planned once."""

    def __init__(
        self,
        snapshot: Snapshot,
        ground: Ground,
        plans: Plans,
        index: Mapping[str, Any] | None,
        sets: tuple[ObservedSet, ...],
    ) -> None:
        self._snapshot, self._ground, self._plans, self._index, self._sets = snapshot, ground, plans, index, sets
        self._steps: dict[str, RolloutStep] = {}

    def step(self, digest: str) -> RolloutStep:
        """The next step towards a plan."""
        if digest not in self._steps:
            plan, rules = self._plans.shelf.plans[digest], RolloutRules.of(self._snapshot.fleet)
            inventory = None if self._ground.inputs is None else self._ground.inventory
            self._steps[digest] = plan_rollout(self._snapshot, plan, self._index, rules, inventory, self._sets)
        return self._steps[digest]

    def verdict(self, choice: Choice) -> Verdict | None:
        """The gate's word; None where nothing is pursued."""
        if choice.target is None:
            return None
        plans, ground = self._plans, self._ground
        step = self.step(choice.target)
        found = gate_input(
            self._snapshot, choice, plans.shelf, plans.judged, ground.inventory, ground.freshness, step.refusal,
            finishing=step.finishes,
        )  # fmt: skip
        return None if found is None else judge(found)
