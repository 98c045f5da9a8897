"""The RoutingPlan of a decision: the digested spec in integers, and beside it how good the plan is.

Inputs: a problem, the frozen instance, the rounded result, its forecast. Outputs: a ``RoutingPlan``. The same
inputs give the same bytes: groups and classes are in order of name, placements in order of node, and nothing
in the spec depends on a clock or on how long the search took. Source: 01-api (RoutingPlan).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kvplan_operator.api.common import ObjectMeta
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.api.routing_plan import (
    ClassPlan,
    EngineFlag,
    Group,
    Placement,
    Route,
    RoutingPlan,
    RoutingPlanSpec,
)
from kvplan_operator.api.routing_plan_status import (
    BindingConstraint,
    ClassOutlook,
    CostParts,
    GroupOutlook,
    Objective,
    Outlook,
    PartitionCount,
    Rejected,
    RoutingPlanStatus,
    RunnerUp,
    Solve,
)
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.digest import inputs_digest, plan_name
from kvplan_operator.plan.engine_flags import PlannedConfiguration, engine_flags
from kvplan_operator.plan.forecast import ClassForecast, Forecast, GroupForecast
from kvplan_solver.budget import floor_to_block
from kvplan_solver.instance import ConfigurationInput, Instance
from kvplan_solver.memory import effective_tokens, eligible, longest_request_tokens
from kvplan_solver.result import CostParts as SolverCosts
from kvplan_solver.result import Result
from kvplan_solver.units import MILLI, to_milli

SOLVER_VERSION = "0.1.0"
"""Version of the solver that a plan's status names; it moves with the package's."""
BATCH_ANNOTATION = "kvplan.dev/planned-batch"
"""On plans of the planner: the batch whose speeds each configuration was priced at, ``tp1=12.5,tp4=80.25``.

A reader takes it only if the plan implies no larger batch, so nobody can make a plan look faster with it.
"""


def routing_plan(
    problem: Problem,
    instance: Instance,
    result: Result,
    promised: Forecast,
    batches: Mapping[str, float],
    running: RoutingPlan | None = None,
) -> RoutingPlan:
    """The plan as an object, named after its digest.

    Args:
        problem: what it was made for.
        instance: frozen speeds that result and forecast refer to.
        result: shares in thousandths.
        promised: the forecast of the result.
        batches: frozen batch by configuration.
        running: the plan in force, whose engine flags stay where they would change little; None where none is.
    """
    spec = plan_spec(problem, instance, result, promised, running)
    metadata = ObjectMeta(
        name=plan_name(spec),
        namespace=problem.fleet.metadata.namespace,
        labels={FLEET_LABEL: problem.fleet.metadata.name},
        annotations=_annotations(instance, result, batches),
    )
    return RoutingPlan(metadata=metadata, spec=spec, status=_status(instance, result, promised))


def plan_spec(
    problem: Problem, instance: Instance, result: Result, promised: Forecast, running: RoutingPlan | None = None
) -> RoutingPlanSpec:
    """The digested part: the decision and every figure that follows from it; arguments as of ``routing_plan``.

    Raises:
        ValueError: a decision that no RoutingPlan can hold, such as one without room for a single request.
    """
    return RoutingPlanSpec(
        fleet_name=problem.fleet.metadata.name,
        inputs_digest=inputs_digest(problem.fleet.spec, {c.metadata.name: c.spec for c in problem.classes}),
        method=result.method,
        block_tokens=instance.block_tokens,
        groups=_groups(problem, instance, result, promised, running),
        classes=_classes(instance, result),
    )


def planned_batches(plan: RoutingPlan) -> dict[str, float]:
    """The batches a plan's annotation names; entries that are none are passed over."""
    found = {}
    for part in plan.metadata.annotations.get(BATCH_ANNOTATION, "").split(","):
        name, _, text = part.partition("=")
        if text.replace(".", "", 1).isdecimal() and float(text) >= 1:
            found[name] = float(text)
    return found


def _annotations(instance: Instance, result: Result, batches: Mapping[str, float]) -> dict[str, str]:
    used = [
        f"{k.name}={batches[k.name]:.9g}"
        for k, z in zip(instance.configurations, result.groups, strict=True)
        if z and k.name in batches
    ]
    return {BATCH_ANNOTATION: ",".join(used)} if used else {}


def _groups(
    problem: Problem, instance: Instance, result: Result, promised: Forecast, running: RoutingPlan | None
) -> tuple[Group, ...]:
    flags = {} if running is None else {g.configuration: g.engine_flags for g in running.spec.groups if g.replicas}
    groups = [_group(problem, instance, result, g, flags.get(g.configuration, ())) for g in promised.groups]
    return tuple(sorted(groups, key=lambda group: group.configuration))


def _group(
    problem: Problem, instance: Instance, result: Result, promised: GroupForecast, running: tuple[EngineFlag, ...]
) -> Group:
    adopted = {c.name: c.deployment for c in problem.fleet.spec.configurations}
    k = next(k for k in instance.configurations if k.name == promised.configuration)
    planned = PlannedConfiguration(
        configuration=k,
        budget_tokens=promised.budget_tokens,
        mean_reservation_tokens=promised.mean_reservation_tokens,
        longest_request_tokens=_longest(instance, k),
        in_flight=promised.in_flight,
        running={flag.name: flag.value for flag in running},
    )
    return Group(
        configuration=k.name,
        replicas=promised.groups,
        deployment=adopted[k.name],
        placements=tuple(Placement(stages=p.stages) for p in sorted(result.placements) if p.configuration == k.name),
        engine_flags=engine_flags(problem.fleet, planned),
        kv_capacity_tokens=k.kv_capacity_tokens,
        budget_tokens=promised.budget_tokens,
        max_sequences=k.max_sequences,
    )


def _longest(instance: Instance, k: ConfigurationInput) -> int:
    """Longest request of every class the group could serve: a changed routing then needs no restart."""
    column = instance.configurations.index(k)
    allowed = eligible(instance)[:, column]
    lengths = longest_request_tokens(instance)
    return int(lengths[allowed].max()) if allowed.any() else k.kv_capacity_tokens


def _classes(instance: Instance, result: Result) -> tuple[ClassPlan, ...]:
    held = effective_tokens(instance, np.array(result.reservation_tokens, dtype=np.float64), result.cached)
    plans = []
    for i, c in enumerate(instance.classes):
        shares = [to_milli(float(share)) for share in result.routing[i]]
        cached = [k.name for n, k in enumerate(instance.configurations) if result.cached[i, n]]
        plans.append(
            ClassPlan(
                name=c.name,
                reservation_tokens=result.reservation_tokens[i],
                reserved_prompt_tokens=min(c.input_tokens_p95, result.reservation_tokens[i]),
                fractile_milli=to_milli(c.fractile),
                routes=_routes(instance, shares, [int(tokens) for tokens in held[i]]),
                prefix_cached_on=tuple(sorted(cached)),
                cached_prefix_tokens=(floor_to_block(c.shared_prefix_tokens, instance.block_tokens) if cached else 0),
                admit_milli=sum(shares),
                max_prompt_tokens=c.input_tokens_max,
                max_output_tokens=c.max_output_tokens,
            )
        )
    return tuple(sorted(plans, key=lambda plan: plan.name))


def _routes(instance: Instance, shares: Sequence[int], held: Sequence[int]) -> tuple[Route, ...]:
    routes = (
        Route(configuration=k.name, share_milli=share, reservation_tokens=tokens)
        for k, share, tokens in zip(instance.configurations, shares, held, strict=True)
        if share
    )
    return tuple(sorted(routes, key=lambda route: route.configuration))


def _status(instance: Instance, result: Result, promised: Forecast) -> RoutingPlanStatus:
    return RoutingPlanStatus(
        objective=_objective(instance, result),
        rejected=tuple(
            Rejected(name=r.class_name, share_milli=to_milli(r.share), why=r.why[:1024], remedy=r.remedy[:1024])
            for r in result.rejections
        ),
        solve=Solve(
            status=result.status.value,
            seed=result.seed,
            solver_version=SOLVER_VERSION,
            duration_milliseconds=to_milli(sum(result.seconds.values())),
            deadline_hit=result.deadline_hit,
        ),
        forecast=outlook(promised),
    )


def _objective(instance: Instance, result: Result) -> Objective:
    bounded = math.isfinite(result.lower_bound)
    return Objective(
        costs=_costs(result.costs),
        lower_bound_milli=max(0, math.floor(result.lower_bound * MILLI)) if bounded else None,
        gap_milli=min(MILLI, math.ceil(result.gap * MILLI)) if bounded else None,
        binding_constraints=tuple(BindingConstraint(kind=b.kind.value, subject=b.subject) for b in result.binding[:64]),
        runner_up=_runner_up(instance, result),
    )


def _runner_up(instance: Instance, result: Result) -> RunnerUp | None:
    if result.runner_up is None:
        return None
    counts = tuple(
        PartitionCount(configuration=k.name, replicas=z)
        for k, z in zip(instance.configurations, result.runner_up.groups, strict=True)
        if z
    )
    return RunnerUp(total_milli=to_milli(result.runner_up.objective), groups=counts)


def _costs(costs: SolverCosts) -> CostParts:
    return CostParts(
        total_milli=to_milli(costs.total),
        reservation_milli=to_milli(costs.reservation),
        gpu_milli=to_milli(costs.gpu),
        latency_milli=to_milli(costs.latency),
        rejection_milli=to_milli(costs.rejection),
    )


def outlook(promised: Forecast) -> Outlook:
    """The forecast as status shows it."""
    return Outlook(
        classes=tuple(_class_outlook(c) for c in sorted(promised.classes, key=lambda c: c.name)),
        groups=tuple(_group_outlook(g) for g in sorted(promised.groups, key=lambda g: g.configuration)),
    )


def _class_outlook(c: ClassForecast) -> ClassOutlook:
    return ClassOutlook(
        name=c.name,
        requests_per_second_milli=to_milli(c.requests_per_second),
        mean_latency_milliseconds=to_milli(c.response_seconds or 0.0),
        rejected_milli=max(0, MILLI - to_milli(c.admitted)),
        overflow_milli=to_milli(c.overflow_share),
    )


def _group_outlook(g: GroupForecast) -> GroupOutlook:
    return GroupOutlook(
        configuration=g.configuration,
        utilisation_milli=to_milli(g.utilisation),
        kv_use_milli=to_milli(g.memory_share),
        wait_milliseconds=to_milli(g.waiting_seconds),
    )
