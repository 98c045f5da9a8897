"""What a reader of a plan must know besides its figures, one sentence each, the same in every view.

Input: a ``Planned``. Output: sentences. Pure.
"""

import math
from collections.abc import Iterator

from kvplan_operator.api.routing_plan import RoutingPlanSpec
from kvplan_operator.api.routing_plan_status import RunnerUp
from kvplan_operator.plan.document import plan_spec
from kvplan_operator.plan.planned import Planned
from kvplan_solver.units import from_milli

_SAME = 1e-6
"""Relative excess of a latency above which it is called missed."""


def cautions(planned: Planned) -> tuple[str, ...]:
    """Those of the problem, then those of the solve, then of what the engines keep."""
    return (*planned.problem.warnings, *_stranded(planned), *_of_the_solve(planned), *_kept_flags(planned))


def rejected_classes(planned: Planned) -> tuple[tuple[str, float], ...]:
    """Classes with traffic of which a share is rejected, and that share."""
    rejected = ((c.name, 1.0 - c.admitted) for c in planned.forecast.classes if c.requests_per_second > 0)
    return tuple((name, share) for name, share in rejected if share > _SAME)


def late_classes(planned: Planned) -> tuple[str, ...]:
    """Classes with traffic whose mean latency lies above their latency objective."""
    return tuple(
        c.name
        for c in planned.forecast.classes
        if c.requests_per_second > 0
        and c.response_seconds is not None
        and c.response_seconds > c.slo_seconds * (1 + _SAME)
    )


def serves_nobody(planned: Planned) -> str:
    """Why a plan that rejects all there is to serve is no answer; empty where it serves something."""
    busy = [c.name for c in planned.forecast.classes if c.requests_per_second > 0]
    rejected = {name for name, share in rejected_classes(planned) if share >= 1 - _SAME}
    if not busy or set(busy) != rejected:
        return ""
    reasons = "; ".join(f"{r.class_name}: {r.why}; {r.remedy}" for r in planned.result.rejections)
    return f"the plan serves nobody, though requests arrive for {', '.join(busy)}. {reasons}"


def stated_in_file(planned: Planned) -> tuple[str, ...]:
    """Bound and next best partition by the plan's own status, where the solve at hand proved none."""
    status = planned.plan.status
    objective = status.objective
    if math.isfinite(planned.result.lower_bound) or objective is None or objective.lower_bound_milli is None:
        return ()
    worth = f"lower bound {from_milli(objective.lower_bound_milli):.6g}"
    if objective.gap_milli is not None:
        worth += f", gap at most {from_milli(objective.gap_milli):.1%}"
    if status.solve is not None:
        worth = f"{status.solve.status}, {worth}"
    found = (worth,) if objective.runner_up is None else (worth, _next_best(objective.runner_up))
    return tuple(f"{sentence} (stated in the file, not re-proven)" for sentence in found)


def _next_best(runner_up: RunnerUp) -> str:
    shown = " + ".join(f"{group.replicas} × {group.configuration}" for group in runner_up.groups) or "no group at all"
    return f"the next best partition, {shown}, costs {from_milli(runner_up.total_milli):.6g} a second"


def _stranded(planned: Planned) -> Iterator[str]:
    for c in planned.forecast.classes:
        if c.requests_per_second == 0 and c.admitted == 0:
            yield (
                f"class {c.name} has no traffic and no group that can hold it runs: every request would be refused; "
                "set its arrival rate, or spec.nodes.minGpus to keep a group running"
            )


def _of_the_solve(planned: Planned) -> Iterator[str]:
    report = planned.fixed_point
    if not report.converged:
        yield (
            f"batch and plan do not agree: up to {report.residual:.0%} apart after {report.passes} solves, "
            "so latencies are less certain than the gap suggests"
        )
    if planned.result.deadline_hit:
        yield "the wall clock ended the search: another run may find another plan"


def _kept_flags(planned: Planned) -> Iterator[str]:
    """Flags that the plan takes over from what runs; where other figures are wrong, those are told instead."""
    if planned.differences:
        return
    alone = _flags(plan_spec(planned.problem, planned.instance, planned.result, planned.forecast))
    for (configuration, name), value in _flags(planned.plan.spec).items():
        if alone.get((configuration, name), value) != value:
            yield (
                f"{configuration} runs on with --{name}={value}; "
                f"{alone[configuration, name]} is too close to it to be worth a restart"
            )


def _flags(spec: RoutingPlanSpec) -> dict[tuple[str, str], str]:
    return {(group.configuration, flag.name): flag.value for group in spec.groups for flag in group.engine_flags}
