"""Figures of a fleet's status that are read off its objects: groups, GPUs, service as observed. Pure."""

from collections import Counter

from kvplan_operator.act.adopted import autoscaled
from kvplan_operator.act.observed_groups import ObservedSet
from kvplan_operator.api.fleet_status import ExcludedGpus, GpuInventory, GroupStatus
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import ClassOutlook, Outlook
from kvplan_operator.model.inventory import ExclusionReason, Inventory
from kvplan_operator.model.snapshot import ClassMeasured, Object, Snapshot
from kvplan_solver.units import to_milli

MOST_EXCLUDED = 512
"""Entries that a status may list; the sums count all of them."""


def group_figures(
    sets: tuple[ObservedSet, ...], plan: RoutingPlan | None, autoscalers: tuple[Object, ...] = ()
) -> tuple[GroupStatus, ...]:
    """Groups that are planned, run, serve and drain.

    Args:
        sets: the fleet's engine sets.
        plan: in force; None where none is.
        autoscalers: of the namespace; what one of them scales is planned to be as many as it says.
    """
    scaled = {s.configuration: s.replicas for s in sets if s.adopted and autoscaled(s.name, autoscalers)}
    planned = Counter({g.configuration: g.replicas for g in plan.spec.groups if g.replicas} | scaled if plan else {})
    running: Counter[str] = Counter()
    ready: Counter[str] = Counter()
    draining: Counter[str] = Counter()
    for seen in sets:
        for group in seen.groups:
            leaves = group.leaving or group.draining_since is not None
            running[seen.configuration] += 1
            ready[seen.configuration] += group.ready and not leaves
            draining[seen.configuration] += leaves
    return tuple(
        GroupStatus(
            configuration=name,
            planned=planned[name],
            running=running[name],
            ready=ready[name],
            draining=draining[name],
        )
        for name in sorted({*planned, *running})
    )


def gpu_figures(inventory: Inventory, sets: tuple[ObservedSet, ...]) -> GpuInventory:
    """GPUs of the selected nodes; those of other nodes are none of the fleet's."""
    own = [e for e in inventory.excluded if e.reason is not ExclusionReason.NOT_SELECTED and e.gpus]
    excluded: Counter[tuple[str, str]] = Counter()
    for entry in own:
        excluded[entry.node, entry.reason.value] += entry.gpus
    used = sum(seen.gpus_per_pod * len(group.pods) for seen in sets for group in seen.groups if group.bound)
    return GpuInventory(
        allocatable=inventory.gpus + sum(excluded.values()),
        used=used,
        excluded=tuple(
            ExcludedGpus(node=node, reason=reason, gpus=gpus)
            for (node, reason), gpus in sorted(excluded.items())[:MOST_EXCLUDED]
        ),
    )


def observed_outlook(snapshot: Snapshot) -> Outlook | None:
    """Service as it was seen, beside the forecast; None where nothing is known."""
    facts = {name: fact.value for name, fact in snapshot.measured.classes.items()}
    seen = (_class(name, value) for name, value in sorted(facts.items()) if value is not None)
    classes = tuple(outlook for outlook in seen if outlook is not None)
    return Outlook(classes=classes) if classes else None


def _class(name: str, measured: ClassMeasured) -> ClassOutlook | None:
    rate, latency = measured.facts.requests_per_second, measured.latency
    if rate is None or latency is None or latency.mean_milliseconds is None:
        return None
    return ClassOutlook(
        name=name, requests_per_second_milli=to_milli(rate), mean_latency_milliseconds=latency.mean_milliseconds
    )
