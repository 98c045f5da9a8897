"""Budgets that engines can honour: where one holds less than its plan counts on, its slot gets that much less.

Inputs: slots with the plan's budgets, the plan, what engines say of themselves by pod uid. Output: the slots. A plan in
force never changes; what an engine really has (other weights, another driver, a stated capacity that is wrong) may. An
engine that nobody heard of is taken at the plan's word. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.snapshot import EngineState, Fact
from kvplan_operator.route.slots import PublishedSlot


def within_capacities(
    slots: Iterable[PublishedSlot], plan: RoutingPlan | None, engines: Mapping[str, Fact[EngineState]]
) -> tuple[PublishedSlot, ...]:
    """The slots, none with a budget beyond what its engine has; never more than the plan's.

    Args:
        slots: with budgets of the plan.
        plan: in force; None changes nothing.
        engines: by uid of their pod.
    """
    planned = {group.configuration: group.kv_capacity_tokens for group in plan.spec.groups} if plan else {}
    return tuple(_within(slot, planned.get(slot.configuration, 0), engines.get(slot.pod_uid)) for slot in slots)


def _within(slot: PublishedSlot, planned: int, engine: Fact[EngineState] | None) -> PublishedSlot:
    state = engine.value if engine is not None else None
    has = state.kv_capacity_tokens if state is not None else None
    missing = planned - has if has is not None else 0
    return replace(slot, budget_tokens=max(0, slot.budget_tokens - missing)) if missing > 0 else slot
