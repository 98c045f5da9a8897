"""The values routers follow for each class, and a plan with other hot values than those it was made with.

Inputs: RoutingPlans. Outputs: ``HotClass`` entries as a plan's status carries them, and plans for routing only: a
re-tuned plan keeps its name and partition and is never written as an object. Pure. Source: 00-overview (Two speeds).
"""

from kvplan_operator.api.routing_plan import ClassPlan, Route, RoutingPlan
from kvplan_operator.api.routing_plan_status import HotClass, HotRoute


def hot_values(plan: RoutingPlan) -> tuple[HotClass, ...]:
    """What a plan's spec says of each class, as its status shows values in force."""
    return tuple(_hot(class_plan) for class_plan in plan.spec.classes)


def with_hot_values(plan: RoutingPlan, values: tuple[HotClass, ...]) -> RoutingPlan:
    """The plan with other hot values; classes without an entry keep their own, unknown entries are passed over.

    Args:
        plan: the plan in force.
        values: those in force now, from its status or from a fresh plan with the same partition.
    """
    by_name = {value.name: value for value in values}
    classes = tuple(_retuned(c, by_name[c.name]) if c.name in by_name else c for c in plan.spec.classes)
    return plan.model_copy(update={"spec": plan.spec.model_copy(update={"classes": classes})})


def _hot(c: ClassPlan) -> HotClass:
    return HotClass(
        name=c.name,
        reservation_tokens=c.reservation_tokens,
        reserved_prompt_tokens=c.reserved_prompt_tokens,
        admit_milli=c.admit_milli,
        routes=tuple(
            HotRoute(configuration=r.configuration, share_milli=r.share_milli, reservation_tokens=r.reservation_tokens)
            for r in c.routes
        ),
        prefix_cached_on=c.prefix_cached_on,
        cached_prefix_tokens=c.cached_prefix_tokens,
    )


def _retuned(c: ClassPlan, value: HotClass) -> ClassPlan:
    routes = tuple(
        Route(configuration=r.configuration, share_milli=r.share_milli, reservation_tokens=r.reservation_tokens)
        for r in value.routes
    )
    prefix = value.cached_prefix_tokens
    return c.model_copy(
        update={
            "reservation_tokens": value.reservation_tokens,
            "reserved_prompt_tokens": value.reserved_prompt_tokens,
            "admit_milli": value.admit_milli,
            "routes": routes,
            "prefix_cached_on": value.prefix_cached_on,
            "cached_prefix_tokens": c.cached_prefix_tokens if prefix is None else prefix,
        }
    )
