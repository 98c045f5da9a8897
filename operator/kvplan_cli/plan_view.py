"""How a plan looks: what runs where, what each class gets, what it costs and how good that is known to be.

Inputs: a ``Planned``. Output: a ``View`` whose document is the RoutingPlan itself, so that ``-o yaml`` gives
a file for ``kubectl apply`` and git.
"""

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType

from kvplan_cli.output import View, bullets, number, percent, sentence, table
from kvplan_cli.plan_files import plan_document
from kvplan_operator.model.number_source import NumberSource
from kvplan_operator.plan.cautions import cautions, late_classes, rejected_classes, stated_in_file
from kvplan_operator.plan.planned import Planned
from kvplan_solver.result import Result
from kvplan_solver.units import from_milli

_GROUPS = ("configuration", "groups", "GPUs", "in flight", "KV held", "wait", "nodes")
_CLASSES = ("class", "req/s", "reserved", "outgrow it", "admitted", "mean latency", "latency objective", "routes",
            "prefix on")  # fmt: skip
_COSTS = ("cause", "reservation", "GPU time", "latency", "rejection", "total", "lower bound", "gap")
_SPEEDS = ("configuration", "KV capacity", "batch", "prefill, µs/token", "decode, µs/token", "source")


def plan_view(planned: Planned) -> View:
    """The whole plan."""
    return View(plan_document(planned.plan), [*_sections(planned)])


def _sections(planned: Planned) -> Iterator[RenderableType]:
    yield sentence(headline(planned), "bold")
    yield from _caveats(planned)
    yield table("Groups (figures per group)", _GROUPS, group_rows(planned))
    yield table("Classes (reservation in KV tokens, mean latency)", _CLASSES, class_rows(planned))
    yield from bullets("Reserved", _lighter(planned))
    yield table("Cost per second, in wasted KV tokens", _COSTS, [cost_row(planned.result)])
    yield table("Numbers the plan rests on, at the batch of each group", _SPEEDS, speed_rows(planned))
    rejections = [
        f"{r.class_name}: {percent(r.share)} rejected, {r.why}; {r.remedy}" for r in planned.result.rejections
    ]
    yield from bullets("Rejected demand", rejections)
    yield from bullets("What binds", [f"{b.kind.value}: {b.subject}" for b in planned.result.binding])
    yield from bullets("Warnings", cautions(planned))
    yield from bullets("Certificate violations", [f"{v.check.value}: {v.subject}: {v.message}"
                                                 for v in planned.certificate.violations])  # fmt: skip


def headline(planned: Planned) -> str:
    """One line: name, partition, worth, and whom it fails."""
    result, instance = planned.result, planned.instance
    used = sum(z * k.gpus for z, k in zip(result.groups, instance.configurations, strict=True))
    return (
        f"{planned.plan.metadata.name}: {sum(result.groups)} groups on {used} of {instance.gpu_budget} GPUs, "
        f"{result.status.value}, cost {number(result.objective)} per second, {_proven(planned)}{_failed(planned)}"
    )


def _proven(planned: Planned) -> str:
    result = planned.result
    if np.isfinite(result.lower_bound):
        return f"proven gap {percent(result.gap, 2)}"
    return "; ".join(stated_in_file(planned)[:1]) or "no lower bound"


def _failed(planned: Planned) -> str:
    """``, rejects 100.0 % of chat, latency of code above its objective``; empty where all are served as promised."""
    parts = [f"rejects {percent(share)} of {name}" for name, share in rejected_classes(planned)]
    late = late_classes(planned)
    if late:
        parts.append(f"mean latency of {', '.join(late)} above objective")
    return "".join(f", {part}" for part in parts)


def _caveats(planned: Planned) -> Iterator[RenderableType]:
    report = planned.fixed_point
    if not report.converged:
        yield sentence(
            f"Batch and plan still differ by {percent(report.residual)} after {report.passes} solves: "
            "bound and certificate hold for the speeds at the batch assumed."
        )


def group_rows(planned: Planned) -> list[list[object]]:
    """One row per configuration that runs; sequences in flight are those the speeds belong to."""
    inputs = {k.name: k for k in planned.instance.configurations}
    return [
        [
            g.configuration, g.groups, g.groups * inputs[g.configuration].gpus,
            f"{number(g.in_flight, 3)} of {inputs[g.configuration].max_sequences}",
            percent(g.memory_share, 0), _milliseconds(g.waiting_seconds), _nodes(planned.result, g.configuration),
        ]
        for g in planned.forecast.groups
    ]  # fmt: skip


def _nodes(result: Result, configuration: str) -> str:
    """``gpu-node-1 ×2, gpu-node-2``: groups (or their stages) per node."""
    stages = [node for p in result.placements if p.configuration == configuration for node in p.stages]
    counts = {node: stages.count(node) for node in sorted(set(stages))}
    return ", ".join(node if count == 1 else f"{node} ×{count}" for node, count in counts.items())


def class_rows(planned: Planned) -> list[list[object]]:
    """One row per class: demand, reservation, routes, and the mean latency beside its objective."""
    plans = {c.name: c for c in planned.plan.spec.classes}
    rows: list[list[object]] = []
    late = late_classes(planned)
    for promised, reserved in zip(planned.forecast.classes, planned.result.reservation_tokens, strict=True):
        plan = plans[promised.name]
        routes = [f"{route.configuration} {percent(from_milli(route.share_milli))}" for route in plan.routes]
        rows.append(
            [
                promised.name, promised.requests_per_second, reserved, percent(promised.overflow_share),
                percent(promised.admitted),
                _milliseconds(promised.response_seconds) + (" (above)" if promised.name in late else ""),
                _milliseconds(promised.slo_seconds), ", ".join(routes) or "none",
                ", ".join(plan.prefix_cached_on) or "none",
            ]
        )  # fmt: skip
    return rows


def _lighter(planned: Planned) -> Iterator[str]:
    """Where a request takes less than its reservation from a group, because its prefix is there already."""
    for c in planned.plan.spec.classes:
        for route in c.routes:
            if route.reservation_tokens < c.reservation_tokens:
                yield (
                    f"{c.name}: {route.reservation_tokens:,} of the {c.reservation_tokens:,} tokens on "
                    f"{route.configuration}, where the {c.cached_prefix_tokens:,} of its shared prefix are cached"
                )


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1000:,.0f} ms"


def cost_row(result: Result) -> list[object]:
    """The objective by cause."""
    costs = result.costs
    return ["cost", costs.reservation, costs.gpu, costs.latency, costs.rejection, costs.total, result.lower_bound,
            percent(result.gap, 2)]  # fmt: skip


def speed_rows(planned: Planned) -> list[list[object]]:
    """Capacity and speeds of each configuration as the plan was priced, and where they came from."""
    batch = {point.configuration: point.frozen for point in planned.fixed_point.points}
    return [
        [
            k.name, k.kv_capacity_tokens, number(batch[k.name], 3) if k.name in batch else "–",
            k.prefill_seconds_per_token * 1e6, k.decode_seconds_per_token * 1e6,
            _origins(planned.problem.sources, k.name),
        ]
        for k in planned.instance.configurations
    ]  # fmt: skip


def _origins(sources: tuple[NumberSource, ...], configuration: str) -> str:
    found = [s.source.value for s in sources if s.subject == f"configuration {configuration}"]
    return ", ".join(dict.fromkeys(found))
