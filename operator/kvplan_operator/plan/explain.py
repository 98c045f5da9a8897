"""Why a plan is as it is, and what would change it: structured, with a sentence for every number.

Input: a ``Planned``. Output: a frozen ``Explanation`` that the command prints and programs can read. Pure.

Honesty (02-solver §2): with Wasserstein1 the reservation is a step function of ε. It moves only once ε
exceeds the class's threshold R; below it, ε raises the worst-case cost and nothing else.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvplan_operator.model.number_source import NumberSource
from kvplan_operator.plan.cautions import cautions, stated_in_file
from kvplan_operator.plan.derived import Difference
from kvplan_operator.plan.forecast import Forecast
from kvplan_operator.plan.planned import Planned
from kvplan_solver.certificate import Violation
from kvplan_solver.fixed_point import FixedPointReport
from kvplan_solver.instance import Ambiguity, ClassInput
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.result import BindingConstraint, BindingKind, CostParts, Rejection, Status

_SAME = 1e-6
"""Relative difference below which two costs are called the same."""


@dataclass(frozen=True)
class Binding:
    """One binding constraint with the sentence that explains it."""

    kind: BindingKind
    subject: str
    sentence: str


@dataclass(frozen=True)
class Alternative:
    """The best other partition.

    Attributes:
        groups: configuration and groups, those with groups only.
        objective: its cost per second.
        worse_by: relative to the plan's cost; None where the plan costs nothing.
        sentence: for people.
    """

    groups: tuple[tuple[str, int], ...]
    objective: float
    worse_by: float | None
    sentence: str


@dataclass(frozen=True)
class ClassReason:
    """Why a class reserves what it reserves.

    Attributes:
        name: of the class.
        fractile: q = ρ/(ρ+1).
        reservation_tokens: r, prompt included.
        best_tokens: the reservation of the class on its own, before memory and whole blocks.
        radius: ε, tokens (for Scale a fraction).
        shift_threshold_tokens: R, tokens; None outside Wasserstein1.
        radius_moves_reservation: whether ε changes the reservation at all.
        sentence: for people.
    """

    name: str
    fractile: float
    reservation_tokens: int
    best_tokens: float
    radius: float
    shift_threshold_tokens: float | None
    radius_moves_reservation: bool
    sentence: str


@dataclass(frozen=True)
class Explanation:
    """Everything there is to say about a plan.

    Attributes:
        status: what the result is worth.
        costs: the objective by cause, per second.
        lower_bound: proven bound on every plan's cost; None where none is proven.
        gap: distance to it, relative; None without a bound.
        binding: constraints without slack.
        runner_up: the best other partition; None where none was evaluated.
        classes: reservation, fractile and threshold by class.
        rejected: demand that is rejected, why, and the nearest change that would serve it.
        gpu_value: cost per second that one more GPU would save, by the relaxation's price.
        memory_values: configuration and cost saved per further 1000 KV tokens in each of its groups.
        would_change: sentences about what would change the decision.
        forecast: load, waiting and response.
        fixed_point: how well batch and plan agree.
        sources: where every input number came from.
        violations: what the certificate found; empty when it holds.
        differences: figures of the plan that do not follow from its decision.
        stated: what the plan's own status says of its worth, where that was not proven anew.
        warnings: of the problem and of the solve.
    """

    status: Status
    costs: CostParts
    lower_bound: float | None
    gap: float | None
    binding: tuple[Binding, ...]
    runner_up: Alternative | None
    classes: tuple[ClassReason, ...]
    rejected: tuple[Rejection, ...]
    gpu_value: float
    memory_values: tuple[tuple[str, float], ...]
    would_change: tuple[str, ...]
    forecast: Forecast
    fixed_point: FixedPointReport
    sources: tuple[NumberSource, ...]
    violations: tuple[Violation, ...]
    differences: tuple[Difference, ...]
    stated: tuple[str, ...]
    warnings: tuple[str, ...]


def explain(planned: Planned) -> Explanation:
    """The explanation of a plan."""
    result, instance = planned.result, planned.instance
    bounded = math.isfinite(result.lower_bound)
    classes = tuple(_class_reason(planned, i) for i in range(len(instance.classes)))
    return Explanation(
        status=result.status,
        costs=result.costs,
        lower_bound=result.lower_bound if bounded else None,
        gap=result.gap if bounded else None,
        binding=tuple(_binding(planned, constraint) for constraint in result.binding),
        runner_up=_runner_up(planned),
        classes=classes,
        rejected=result.rejections,
        gpu_value=result.gpu_price,
        memory_values=_memory_values(planned),
        would_change=tuple(_would_change(planned, classes)),
        forecast=planned.forecast,
        fixed_point=planned.fixed_point,
        sources=planned.problem.sources,
        violations=planned.certificate.violations,
        differences=planned.differences,
        stated=stated_in_file(planned),
        warnings=cautions(planned),
    )


_SENTENCES = {
    BindingKind.GPU_BUDGET: "all GPUs are in use",
    BindingKind.NODE_FIT: "GPUs are left, but in pieces that no configuration fits",
    BindingKind.MEMORY: "the KV memory of {subject} is full",
    BindingKind.UTILISATION: "{subject} runs at the highest utilisation allowed",
    BindingKind.FIT: "{subject} reserves less than it would on its own, for want of KV memory",
    BindingKind.LATENCY: "{subject} misses its mean latency, which costs less than serving it faster",
    BindingKind.REJECTION: "part of {subject} is rejected",
}


def _binding(planned: Planned, constraint: BindingConstraint) -> Binding:
    sentence = _SENTENCES[constraint.kind].format(subject=constraint.subject)
    if constraint.kind is BindingKind.LATENCY:
        sentence += _latency_detail(planned, constraint.subject)
    return Binding(constraint.kind, constraint.subject, sentence)


def _latency_detail(planned: Planned, name: str) -> str:
    seen = next(c for c in planned.forecast.classes if c.name == name)
    if seen.response_seconds is None:
        return ""
    return f" ({seen.response_seconds:.3g} s mean, target {seen.slo_seconds:.3g} s)"


def _runner_up(planned: Planned) -> Alternative | None:
    result = planned.result
    if result.runner_up is None:
        return None
    names = [k.name for k in planned.instance.configurations]
    groups = tuple((n, z) for n, z in zip(names, result.runner_up.groups, strict=True) if z)
    margin = result.runner_up.objective - result.objective
    worse = margin / result.objective if result.objective > 0 else None
    shown = " + ".join(f"{z} × {name}" for name, z in groups) or "no group at all"
    sentence = f"the next best partition, {shown}, {_compared(margin, worse)}"
    return Alternative(groups, result.runner_up.objective, worse, sentence)


def _compared(margin: float, worse: float | None) -> str:
    if worse is not None and abs(worse) < _SAME:
        return "costs the same: fewer GPUs, then less change, decided"
    relative = "" if worse is None else f" ({abs(worse):.2%})"
    return f"costs {abs(margin):.4g} a second{relative} {'more' if margin > 0 else 'less before rounding of shares'}"


def _class_reason(planned: Planned, i: int) -> ClassReason:
    c, ambiguity = planned.instance.classes[i], planned.instance.ambiguity
    order = robust_order(c, ambiguity)
    plain = robust_order(_without_radius(c), ambiguity)
    threshold = None if math.isnan(order.shift_threshold_tokens) else order.shift_threshold_tokens
    moves = order.output_tokens != plain.output_tokens
    return ClassReason(
        name=c.name,
        fractile=c.fractile,
        reservation_tokens=planned.result.reservation_tokens[i],
        best_tokens=c.input_tokens_p95 + order.output_tokens,
        radius=c.radius,
        shift_threshold_tokens=threshold,
        radius_moves_reservation=moves,
        sentence=_radius_sentence(c, ambiguity, threshold, moves),
    )


def _without_radius(c: ClassInput) -> ClassInput:
    return replace(c, radius=0.0)


def _radius_sentence(c: ClassInput, ambiguity: Ambiguity, threshold: float | None, moves: bool) -> str:
    if threshold is None:
        verb = "moves" if moves else "does not move"
        return f"{c.name}: the radius of {c.radius:.4g} {verb} the reservation under {ambiguity.value}"
    compared = (
        f"its radius of {c.radius:.4g} tokens is {'above' if moves else 'within'} the threshold of {threshold:.4g}"
    )
    effect = "so the reservation is raised" if moves else "so the reservation is that of the samples alone"
    step = "under Wasserstein1 the reservation is a step function of the radius"
    return f"{c.name}: {compared}, {effect} ({step})"


def _memory_values(planned: Planned) -> tuple[tuple[str, float], ...]:
    prices = planned.result.memory_prices
    names = [k.name for k in planned.instance.configurations]
    return tuple((n, 1000 * price) for n, price in zip(names, prices, strict=False) if price > 0)


def _would_change(planned: Planned, classes: tuple[ClassReason, ...]) -> Iterator[str]:
    if planned.result.gpu_price > 0:
        yield f"one more GPU would save about {planned.result.gpu_price:.4g} a second"
    for name, value in _memory_values(planned):
        yield f"1000 more KV tokens in each {name} group would save about {value:.4g} a second"
    for rejection in planned.result.rejections:
        yield f"{rejection.class_name}: {rejection.remedy}"
    for reason in classes:
        if reason.shift_threshold_tokens is not None and not reason.radius_moves_reservation:
            threshold = reason.shift_threshold_tokens
            yield f"{reason.name}: a radius above {threshold:.4g} tokens would move its reservation"
    alternative = planned.result.runner_up
    if alternative is not None and alternative.objective > planned.result.objective * (1 + _SAME):
        margin = alternative.objective - planned.result.objective
        yield f"{margin:.4g} a second less for the next best partition would make it the best"
