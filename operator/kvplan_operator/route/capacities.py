"""Budgets that engines can honour: where one holds less than its plan counts on, its slot gets that much less.

Inputs: slots with the plan's budgets, the index in force, the plan, what engines say of themselves by pod uid. Output:
the slots. A plan in force never changes; what an engine really has (other weights, another driver, a stated capacity
that is wrong) may. A silent engine keeps the budget that an index of this plan gave it, and one that nobody ever heard
of is taken at the plan's word. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.snapshot import EngineState, Fact
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.route.published import Published
from kvplan_operator.route.slots import PublishedSlot


def within_capacities(
    slots: Sequence[PublishedSlot],
    before: Published,
    plan: RoutingPlan | None,
    engines: Mapping[str, Fact[EngineState]],
) -> tuple[PublishedSlot, ...]:
    """The slots, none with a budget beyond what its engine has; never more than the plan's.

    Args:
        slots: with budgets of the plan.
        before: the index in force.
        plan: in force; None changes nothing.
        engines: by uid of their pod.
    """
    if plan is None:
        return tuple(slots)
    planned = {group.configuration: group.kv_capacity_tokens for group in plan.spec.groups}
    silent = any(slot.pod_uid and _capacity(engines.get(slot.pod_uid)) is None for slot in slots)
    given = _given(before, plan) if silent else {}  # the digest of a plan is not worth taking at every look

    def budget(slot: PublishedSlot) -> int:
        has = _capacity(engines.get(slot.pod_uid))
        if has is None:
            return min(slot.budget_tokens, given.get(slot.pod_uid, slot.budget_tokens))
        return max(0, slot.budget_tokens - max(0, planned.get(slot.configuration, 0) - has))

    return tuple(replace(slot, budget_tokens=budget(slot)) for slot in slots)


def _given(before: Published, plan: RoutingPlan) -> dict[str, int]:
    """Budgets in force by pod, where they follow this plan."""
    document = before.document or {}
    same_plan = document.get("planDigest") == plan_digest(plan.spec)
    return {slot.pod_uid: slot.budget_tokens for slot in before.slots if slot.pod_uid} if same_plan else {}


def _capacity(engine: Fact[EngineState] | None) -> int | None:
    return None if engine is None or engine.value is None else engine.value.kv_capacity_tokens
