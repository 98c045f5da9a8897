"""Builder of what the gate judges: a plan that passes, changed in the parts that a case is about."""

from dataclasses import replace
from typing import Any

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.gate.gate_input import Freshness, Gain, GateInput, Ground, History
from kvplan_operator.plan.choice import Standing
from kvplan_operator.plan.diff import diff_plans
from tests.routing_plans import NOW, class_plan, digest_of, fleet_with, group, plan_of

BEFORE = plan_of((group(nodes=("a", "a", "b")),))
AFTER = plan_of((group("tp2", ("a", "b")),), (class_plan(to="tp2"),))
RETUNED = plan_of((group(nodes=("a", "a", "b")),), (class_plan(tokens=640),))
FRESH = Freshness(ConditionStatus.TRUE, ConditionReason.NOTHING_WRONG, "")


def judged(**changes: Any) -> GateInput:
    """A plan that passes: the policy's pick, a third cheaper, two hours after the last change."""
    spec = changes.pop("spec", {})
    plan = changes.pop("plan", AFTER)
    passes = GateInput(
        now=NOW,
        fleet=fleet_with(BEFORE, plan, **spec),
        plan=plan,
        digest=digest_of(plan),
        standing=Standing.PROPOSED,
        accepted=False,
        freshness=FRESH,
        problems=(),
        ground=Ground("now", "now"),
        change=diff_plans(BEFORE, plan),
        gain=Gain(before=300.0, after=200.0),
        history=History(stands_since=NOW - 7_200),
    )
    return replace(passes, **changes)
