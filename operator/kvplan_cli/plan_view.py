"""How a plan looks: what runs where, what each class gets, what it costs and how good that is known to be.

Inputs: a ``Planned``. Output: a ``View`` whose document is the RoutingPlan itself, so that ``-o yaml`` gives
a file for ``kubectl apply`` and git.
"""

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType

from kvplan_cli.output import View, bullets, number, percent, sentence, table
from kvplan_operator.model.number_source import NumberSource
from kvplan_operator.plan.planner import Planned
from kvplan_solver.queueing import utilisation
from kvplan_solver.result import InfeasibleReason, Result, Status
from kvplan_solver.service_time import service_matrix

_GROUPS = ("configuration", "groups", "GPUs", "sequences", "KV tokens", "busy", "nodes")
_CLASSES = ("class", "req/s", "reserved", "fractile", "admitted", "routes", "prefix cached on")
_COSTS = ("cost per second", "reservation", "GPU time", "latency", "rejection", "total", "bound", "gap")
_SOURCES = ("configuration", "KV capacity", "sequences", "prefill, µs/token", "decode, µs/token", "source")


def plan_view(planned: Planned) -> View:
    """The whole plan."""
    return View(planned.plan.to_wire(), [*_sections(planned)])


def _sections(planned: Planned) -> Iterator[RenderableType]:
    yield sentence(headline(planned), "bold")
    yield from _verdict(planned.result)
    yield table("Groups", _GROUPS, group_rows(planned))
    yield table("Classes", _CLASSES, class_rows(planned))
    yield table("Objective (in wasted KV tokens)", _COSTS, [cost_row(planned.result)])
    yield table("Numbers the plan rests on, at batch 1", _SOURCES, source_rows(planned.problem.sources))
    rejections = [
        f"{r.class_name}: {percent(r.share)} rejected, {r.why}; {r.remedy}" for r in planned.result.rejections
    ]
    yield from bullets("Rejected demand", rejections)
    yield from bullets("What binds", [f"{b.kind.value}: {b.subject}" for b in planned.result.binding])
    yield from bullets("Warnings", planned.problem.warnings)
    yield from bullets("Certificate violations", [f"{v.check.value}: {v.subject}: {v.message}"
                                                 for v in planned.certificate.violations])  # fmt: skip


def headline(planned: Planned) -> str:
    """One line: name, partition, worth."""
    result, instance = planned.result, planned.instance
    used = sum(z * k.gpus for z, k in zip(result.groups, instance.configurations, strict=True))
    return (
        f"{planned.plan.metadata.name}: {sum(result.groups)} groups on {used} of {instance.gpu_budget} GPUs, "
        f"{result.status.value}, cost {number(result.objective)} per second, {_proven(result)}"
    )


def _proven(result: Result) -> str:
    return "no bound" if np.isinf(result.lower_bound) else f"proven gap {percent(result.gap, 2)}"


def _verdict(result: Result) -> Iterator[RenderableType]:
    if result.status is Status.INFEASIBLE:
        reason = result.infeasible_reason or InfeasibleReason.MIN_GPUS_DO_NOT_FIT
        yield sentence(f"There is no plan ({reason.value}): {result.message}\n")
    if result.deadline_hit:
        yield sentence("The time limit ended the search: run again, and the plan may differ.\n")


def group_rows(planned: Planned) -> list[list[object]]:
    """One row per configuration that runs."""
    instance, result = planned.instance, planned.result
    rates = result.routing * np.array([c.arrival_rate for c in instance.classes])[:, None]
    slots = np.array([float(k.max_sequences) for k in instance.configurations])
    busy = utilisation(rates, service_matrix(instance), np.array(result.groups, dtype=np.float64), slots)
    return [
        [k.name, z, z * k.gpus, k.max_sequences, k.kv_capacity_tokens, percent(float(u)), _nodes(result, k.name)]
        for k, z, u in zip(instance.configurations, result.groups, busy, strict=True)
        if z
    ]


def _nodes(result: Result, configuration: str) -> str:
    """``gpu-node-1 ×2, gpu-node-2``: groups (or their stages) per node."""
    stages = [node for p in result.placements if p.configuration == configuration for node in p.stages]
    counts = {node: stages.count(node) for node in sorted(set(stages))}
    return ", ".join(node if count == 1 else f"{node} ×{count}" for node, count in counts.items())


def class_rows(planned: Planned) -> list[list[object]]:
    """One row per class."""
    instance, result = planned.instance, planned.result
    names = [k.name for k in instance.configurations]
    rows: list[list[object]] = []
    for i, c in enumerate(instance.classes):
        shares = result.routing[i]
        routes = ", ".join(f"{name} {percent(s, 0)}" for name, s in zip(names, shares, strict=True) if s > 5e-4)
        cached = ", ".join(name for name, held in zip(names, result.cached[i], strict=True) if held)
        admitted = percent(float(shares.sum()))
        reserved = result.reservation_tokens[i]
        rows.append(
            [c.name, c.arrival_rate, reserved, f"{c.fractile:.3f}", admitted, routes or "none", cached or "none"]
        )
    return rows


def cost_row(result: Result) -> list[object]:
    """The objective by cause."""
    costs = result.costs
    return ["", costs.reservation, costs.gpu, costs.latency, costs.rejection, costs.total, result.lower_bound,
            percent(result.gap, 2)]  # fmt: skip


def source_rows(sources: tuple[NumberSource, ...]) -> list[list[object]]:
    """The four numbers of each configuration and where they came from."""
    by_subject: dict[str, list[NumberSource]] = {}
    for source in sources:
        if source.subject.startswith("configuration "):
            by_subject.setdefault(source.subject.removeprefix("configuration "), []).append(source)
    return [[name, *_numbers(found), _origins(found)] for name, found in by_subject.items()]


def _numbers(found: list[NumberSource]) -> list[object]:
    return [s.value * 1e6 if "seconds" in s.quantity else int(s.value) for s in found]


def _origins(found: list[NumberSource]) -> str:
    words = list(dict.fromkeys(s.source.value for s in found))
    return ", ".join(words)
