"""The checks of the gate, one small function each: what is looked at, and a refusal with numbers and remedy.

Input: a ``GateInput``. Output: a ``Refusal``, or None where the check passes. Times in messages are points in time,
not what is left of them: a message that counts down would be a write at every look. Pure. Source: 04 §4.
"""

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.gate.gate_input import GateInput
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.model.instants import timestamp
from kvplan_operator.plan.choice import Standing
from kvplan_solver.units import from_milli

HOUR = 3_600.0
CONTENDED_FLIPS = 5
"""Times another controller set our fields back after which we stop writing them."""
CONTENDED_SECONDS = HOUR
"""The time in which they count: what looks at git every ten minutes is noticed too."""
_ANYWAY = "accept its digest to apply it anyway"


def not_suspended(plan: GateInput) -> Refusal | None:
    """``spec.suspend`` stops every change."""
    if not plan.fleet.spec.suspend:
        return None
    message = "spec.suspend is true: set it to false to let changes go on"
    return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.SUSPENDED, message)


def metrics_fresh(plan: GateInput) -> Refusal | None:
    """The policy changes nothing on numbers that are old or incomplete."""
    found = plan.freshness
    if found.status is ConditionStatus.TRUE:
        return None
    return Refusal(ConditionType.METRICS_FRESH, found.reason, found.message)


def certificate_holds(plan: GateInput) -> Refusal | None:
    """The plan keeps every constraint of the model today (``kvplan_solver.certificate``)."""
    name = plan.plan.metadata.name
    if plan.problems is None:
        message = f"RoutingPlan {name} cannot be checked: the fleet's rates, lengths or GPUs are not known now"
        return Refusal(ConditionType.PLAN_FEASIBLE, ConditionReason.RATES_UNAVAILABLE, message)
    if not plan.problems:
        return None
    more = f" and {len(plan.problems) - 1} more" if len(plan.problems) > 1 else ""
    remedy = "accept a plan made for the fleet as it is" if plan.accepted else "a new solve follows"
    message = f"RoutingPlan {name} breaks {plan.problems[0]}{more}: {remedy}"
    return Refusal(ConditionType.PLAN_FEASIBLE, ConditionReason.CERTIFICATE_REJECTED, message, stalled=plan.accepted)


def inventory_unchanged(plan: GateInput) -> Refusal | None:
    """Its nodes still have its GPUs; what the policy picks was also made for exactly the GPUs there are.

    A change under way loses another node: it stops no further group, and what it stopped before comes back.
    """
    ground = plan.ground
    if ground.lost and not (plan.standing is Standing.IN_FORCE and plan.finishing):
        message = f"{'; '.join(ground.lost)}: bring the node back, or let a plan without it be applied"
        return Refusal(ConditionType.INVENTORY_READY, ConditionReason.INVENTORY_CHANGED, message)
    picked = plan.standing is Standing.PROPOSED
    if not picked or ground.planned in (None, ground.today):
        return None
    message = "nodes or the GPUs that other pods hold changed after the solve: a new one follows"
    return Refusal(ConditionType.INVENTORY_READY, ConditionReason.INVENTORY_CHANGED, message)


def accepted_or_policy(plan: GateInput) -> Refusal | None:
    """Somebody wants the plan: its digest is accepted, or the policy is Auto. DryRun changes nothing at all."""
    mode = plan.fleet.spec.plan_policy.mode
    if mode is PolicyMode.DRY_RUN:
        message = "planPolicy.mode is DryRun: set it to Approve or Auto to let plans be applied"
        return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.PROPOSED_ONLY, message)
    if plan.accepted or mode is PolicyMode.AUTO:
        return None
    message = f"write spec.acceptedPlan.digest {plan.digest} to apply RoutingPlan {plan.plan.metadata.name}"
    return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.AWAITING_APPROVAL, message)


def dwelt(plan: GateInput) -> Refusal | None:
    """The change before is complete and its partition stood long enough, unless it cannot serve what arrives."""
    if not plan.cold or not plan.change.old or (plan.gain is not None and not plan.gain.holds):
        return None
    if not plan.change.kept + plan.change.stopped:  # a fleet without a group has nothing that could be disturbed
        return None
    since, least = plan.history.stands_since, float(plan.fleet.spec.replan.min_dwell_seconds)
    if since is not None and plan.now - since >= least:
        return None
    message = f"RoutingPlan {plan.change.old} is still being put in force: another change waits for that"
    if since is not None:
        until = timestamp(since + least)
        message = f"the partition stands since {timestamp(since)} and stays until {until} (replan.minDwellSeconds)"
    return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.DWELLING, message)


def improves_enough(plan: GateInput) -> Refusal | None:
    """It saves more than ``minImprovementMilli``, and more than the change itself costs while it stands."""
    gain = plan.gain
    if gain is None or not gain.holds or gain.per_second == float("inf"):
        return None
    least = from_milli(plan.fleet.spec.replan.min_improvement_milli) * gain.before
    if gain.per_second <= least:
        numbers = f"{gain.per_second:.3g} of {gain.before:.3g} wasted tokens a second"
        message = f"it saves {numbers}, not more than {least:.3g} (replan.minImprovementMilli): {_ANYWAY}"
        return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.SMALL_IMPROVEMENT, message)
    cost, saved = change_cost(plan), gain.per_second * stands_seconds(plan)
    if saved > cost:
        return None
    work = f"{replaced(plan)} restarts of {plan.history.load_seconds:.0f} s cost {cost:.3g} wasted tokens"
    message = f"{work}, it saves {saved:.3g} in {stands_seconds(plan):.0f} s: {_ANYWAY}"
    return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.SMALL_IMPROVEMENT, message)


def change_cost(plan: GateInput) -> float:
    """What the change costs once, in wasted KV tokens: work not done while models load, prefixes computed again.

    A group that loads in place of another does not do its part of the work, so the fleet's cost per second, shared
    among the groups there are, is counted a second time for each; one that is added takes nobody's place. Each started
    group computes the cached prefixes anew.
    """
    if plan.gain is None:
        return 0.0
    groups = max(1, plan.change.kept + plan.change.stopped, plan.change.started)
    away = replaced(plan) * plan.history.load_seconds * plan.gain.before / groups
    return away + plan.change.started * _rewarmed_tokens(plan)


def replaced(plan: GateInput) -> int:
    """Groups that start on the GPUs of groups that stop."""
    return min(plan.change.started, plan.change.stopped)


def stands_seconds(plan: GateInput) -> float:
    """How long the new partition will stand at least, seconds: that is what its saving is counted over."""
    replan = plan.fleet.spec.replan
    return float(max(replan.min_dwell_seconds, replan.interval_seconds))


def _rewarmed_tokens(plan: GateInput) -> float:
    return float(sum(c.cached_prefix_tokens for c in plan.plan.spec.classes if c.prefix_cached_on))


def restart_budget_left(plan: GateInput) -> Refusal | None:
    """Another group may be restarted this hour; a change of many restarts goes on as the hours pass."""
    most = plan.fleet.spec.replan.max_restarts_per_hour
    recent = sorted(at for at in plan.history.restarts if plan.now - at < HOUR)
    if plan.accepted or not plan.restarts or len(recent) < most:
        return None
    after = f"the next may follow at {timestamp(recent[-most] + HOUR)}" if most else "raise it to allow any"
    counted = f"{len(recent)} groups were restarted within an hour, {most} are allowed (replan.maxRestartsPerHour)"
    message = f"{counted}: {after}{_fought(plan)}"
    return Refusal(ConditionType.PLAN_ACCEPTED, ConditionReason.RESTART_BUDGET_SPENT, message)


def no_foreign_writer(plan: GateInput) -> Refusal | None:
    """Nobody keeps setting our fields back."""
    if len(_flips(plan)) < CONTENDED_FLIPS:
        return None
    return Refusal(ConditionType.CONTENDED, ConditionReason.FOREIGN_WRITER, _fight(plan), stalled=True)


def _fought(plan: GateInput) -> str:
    """Restarts that another controller is the cause of are told as such, however few they are."""
    return f"; {_fight(plan)}" if _flips(plan) else ""


def _fight(plan: GateInput) -> str:
    flips = _flips(plan)
    times = f"{len(flips)} time{'s' if len(flips) > 1 else ''} since {timestamp(min(flips))}"
    return f"another controller set kvplan's fields back {times}: make it ignore replicas and engine flags"


def _flips(plan: GateInput) -> tuple[float, ...]:
    return tuple(at for at in plan.history.set_back if plan.now - at < CONTENDED_SECONDS)


def path_exists(plan: GateInput) -> Refusal | None:
    """Some order of steps leads there without a spare GPU and above ``rollout.minAvailableMilli``."""
    return plan.path
