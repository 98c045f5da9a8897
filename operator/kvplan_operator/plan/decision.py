"""A RoutingPlan read back as the solver's Result, whoever wrote it, with every cost computed anew.

Inputs: a RoutingPlan and the ``Problem`` of its fleet. Output: a ``Result`` for the certificate. Takes nothing
from the plan but the decision itself; ``derived`` compares the rest. Pure.
"""

from collections.abc import Mapping

import numpy as np

from kvplan_operator.api.routing_plan import ClassPlan, Group, RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.pricing import price
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats, GroupPlacement, Instance
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.packing import place
from kvplan_solver.result import Bools, Result, Status
from kvplan_solver.units import from_milli


def decision_from_plan(plan: RoutingPlan, problem: Problem, instance: Instance | None = None) -> Result:
    """The plan's decision as a Result on an instance, priced.

    Args:
        plan: made by the planner or by people.
        problem: of the fleet the plan is for.
        instance: the frozen instance to price it on; the problem's own where absent.

    Raises:
        InvalidInput: the plan is for another fleet, or its classes or configurations are not the problem's.
    """
    on = instance or problem.instance
    _check_names(plan, problem)
    groups = _by_configuration(plan)
    counts = tuple(groups[k.name].replicas if k.name in groups else 0 for k in on.configurations)
    routing, cached = _routing(plan, on), _cached(plan, on)
    reservation = tuple(_class_plans(plan)[c.name].reservation_tokens for c in on.classes)
    # A share sent to no group waits for ever; it is priced as rejected here and named by the certificate.
    costs, excess = price(on, counts, reservation, np.where(np.array(counts) > 0, routing, 0.0))
    return Result(
        method=plan.spec.method,
        status=Status.FEASIBLE,
        groups=counts,
        placements=_placements(plan, on, counts),
        reservation_tokens=reservation,
        routing=routing,
        cached=cached,
        slo_excess_seconds=excess,
        costs=costs,
        lower_bound=float("-inf"),
        shift_threshold_tokens=tuple(robust_order(c, on.ambiguity).shift_threshold_tokens for c in on.classes),
    )


def _by_configuration(plan: RoutingPlan) -> Mapping[str, Group]:
    return {group.configuration: group for group in plan.spec.groups}


def _class_plans(plan: RoutingPlan) -> Mapping[str, ClassPlan]:
    return {class_plan.name: class_plan for class_plan in plan.spec.classes}


def _check_names(plan: RoutingPlan, problem: Problem) -> None:
    subject = f"RoutingPlan {plan.metadata.name}"
    fleet = problem.fleet.metadata.name
    if plan.spec.fleet_name != fleet:
        raise InvalidInput(subject, "spec.fleetName", plan.spec.fleet_name, f"give a plan of fleet {fleet}")
    known = {k.name for k in problem.instance.configurations}
    for name in sorted(set(_by_configuration(plan)) - known):
        remedy = f"the fleet's configurations that can run are {', '.join(sorted(known))}"
        raise InvalidInput(subject, f"spec.groups[{name}]", name, remedy)
    _check_classes(subject, set(_class_plans(plan)), {c.name for c in problem.instance.classes})


def _check_classes(subject: str, planned: set[str], wanted: set[str]) -> None:
    for name in sorted(wanted - planned):
        raise InvalidInput(subject, "spec.classes", name, "add this class; admitMilli 0 rejects all of it")
    for name in sorted(planned - wanted):
        raise InvalidInput(subject, "spec.classes", name, "remove it: no class of the fleet has this name")


def _routing(plan: RoutingPlan, instance: Instance) -> Floats:
    names = [k.name for k in instance.configurations]
    shares = np.zeros((len(instance.classes), len(names)))
    for i, c in enumerate(instance.classes):
        for route in _class_plans(plan)[c.name].routes:
            shares[i, names.index(route.configuration)] = from_milli(route.share_milli)
    return shares


def _cached(plan: RoutingPlan, instance: Instance) -> Bools:
    plans = _class_plans(plan)
    return np.array(
        [[k.name in plans[c.name].prefix_cached_on for k in instance.configurations] for c in instance.classes]
    )


def _placements(plan: RoutingPlan, instance: Instance, counts: tuple[int, ...]) -> tuple[GroupPlacement, ...]:
    """As the plan says; where it leaves them to others, any that fit."""
    if any(group.replicas and not group.placements for group in plan.spec.groups):
        return place(instance, counts) or ()
    named = (
        GroupPlacement(group.configuration, placement.stages)
        for group in plan.spec.groups
        for placement in group.placements
    )
    return tuple(sorted(named))
