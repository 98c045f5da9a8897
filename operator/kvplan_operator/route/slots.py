"""Which pod is which slot: stable names for destinations whose pods come and go (09-contracts "Identities").

Inputs: the slots of the index in force, the fleet's pods, the plan's groups, the slots being drained and the pods that
go before they could serve. Output: the next slots. The index is all the memory there is: a pod keeps the slot that the
index gives it, and a new pod takes the lowest free number of its configuration. Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.index_head import FULL_WEIGHT
from kvplan_operator.route.engine_pods import EnginePod


class SlotState(StrEnum):
    """What a router does with a slot."""

    SERVING = "serving"
    DRAINING = "draining"
    """Takes no new request; its running ones finish."""
    GONE = "gone"
    """No pod, or one that is not Ready."""


@dataclass(frozen=True)
class PlannedGroups:
    """What a plan says of one configuration.

    Attributes:
        replicas: groups wanted.
        budget_tokens: Q of each.
    """

    replicas: int
    budget_tokens: int


@dataclass(frozen=True)
class PublishedSlot:
    """One slot as the index lists it.

    Attributes:
        name: ``<configuration>-<number>``.
        configuration: of its groups.
        state: what routers do with it.
        budget_tokens: Q, KV tokens that requests in flight may hold together.
        pod_uid: of the pod behind it; empty where there is none.
        pod_name: of that pod.
        address: ``ip:port``; empty where requests cannot go there.
    """

    name: str
    configuration: str
    state: SlotState
    budget_tokens: int = 0
    pod_uid: str = ""
    pod_name: str = ""
    address: str = ""

    @property
    def number(self) -> int:
        """The number behind the configuration's name."""
        return int(self.name.rpartition("-")[2])

    def to_wire(self) -> dict[str, Any]:
        """The index entry; absent fields are left out."""
        pod = {"podUID": self.pod_uid, "podName": self.pod_name, "address": self.address}
        return {
            "slot": self.name,
            "configuration": self.configuration,
            "budgetTokens": self.budget_tokens,
            "weightMilli": FULL_WEIGHT if self.state is SlotState.SERVING else 0,
            "state": self.state.value,
            **{name: value for name, value in pod.items() if value},
        }


def slots_from_wire(entries: Iterable[Mapping[str, Any]]) -> tuple[PublishedSlot, ...]:
    """The slots of a checked index document."""
    return tuple(
        PublishedSlot(
            name=entry["slot"],
            configuration=entry["configuration"],
            state=SlotState(entry["state"]),
            budget_tokens=entry["budgetTokens"],
            pod_uid=entry.get("podUID", ""),
            pod_name=entry.get("podName", ""),
            address=entry.get("address", ""),
        )
        for entry in entries
    )


def planned_groups(plan: RoutingPlan) -> dict[str, PlannedGroups]:
    """The plan's groups by configuration."""
    return {g.configuration: PlannedGroups(g.replicas, g.budget_tokens) for g in plan.spec.groups}


def next_slots(
    before: Sequence[PublishedSlot],
    pods: Sequence[EnginePod],
    planned: Mapping[str, PlannedGroups],
    draining: Collection[str] = (),
    named: Collection[str] = (),
    unlisted: Collection[str] = (),
) -> tuple[PublishedSlot, ...]:
    """The slots of the next index, by configuration and number.

    Args:
        before: slots of the index in force; none before the first.
        pods: the fleet's groups, oldest first.
        planned: the plan's groups by configuration; none without a plan.
        draining: slots that a rollout empties.
        named: slots that the keys in force name; they stay listed, so that every home can be looked up.
        unlisted: uids of pods that get no slot; one that has a slot keeps it.
    """
    holders = _assigned(before, pods, planned, unlisted)
    known = {slot.name: slot for slot in before}
    names = {_name(k, n): k for k, groups in planned.items() for n in range(groups.replicas)}
    names |= {name: slot.configuration for name, slot in known.items() if name in named}
    names |= {name: pod.configuration for name, pod in holders.items()}
    slots = [
        _slot(name, k, holders.get(name), _budget(k, planned, known.get(name)), name in draining)
        for name, k in names.items()
    ]
    return tuple(sorted(slots, key=lambda slot: (slot.configuration, slot.number)))


def _assigned(
    before: Sequence[PublishedSlot],
    pods: Sequence[EnginePod],
    planned: Mapping[str, PlannedGroups],
    unlisted: Collection[str],
) -> dict[str, EnginePod]:
    """Pod by slot name: kept places first, then the new pods, oldest first."""
    waiting = {pod.uid: pod for pod in pods}
    holders: dict[str, EnginePod] = {}
    for slot in before:
        if slot.pod_uid in waiting and waiting[slot.pod_uid].configuration == slot.configuration:
            holders[slot.name] = waiting.pop(slot.pod_uid)
    for pod in waiting.values():
        # A pod on its way out that has no place needs none; its replacement may have taken it.
        if not pod.terminating and pod.uid not in unlisted:
            groups = planned.get(pod.configuration)
            holders[_free_name(pod.configuration, holders, groups.replicas if groups else 0)] = pod
    return holders


def _free_name(configuration: str, holders: Mapping[str, EnginePod], replicas: int) -> str:
    """The lowest free number; rather than one beyond the plan, the place of a pod that is on its way out."""
    free = next(n for n in count() if _name(configuration, n) not in holders)
    if free < replicas:
        return _name(configuration, free)
    places = (_name(configuration, n) for n in range(replicas))
    return next((name for name in places if holders[name].terminating), _name(configuration, free))


def _name(configuration: str, number: int) -> str:
    return f"{configuration}-{number}"


def _budget(configuration: str, planned: Mapping[str, PlannedGroups], known: PublishedSlot | None) -> int:
    """Q of the plan; groups that a new plan leaves out keep theirs until they are gone."""
    if configuration in planned:
        return planned[configuration].budget_tokens
    return known.budget_tokens if known else 0


def _slot(name: str, configuration: str, pod: EnginePod | None, budget: int, draining: bool) -> PublishedSlot:
    if pod is None:
        return PublishedSlot(name, configuration, SlotState.GONE, budget)
    leaving = draining or pod.terminating
    serving = SlotState.SERVING if pod.ready and pod.address else SlotState.GONE
    state = SlotState.DRAINING if leaving else serving
    # A draining pod often stops being Ready while its last requests finish: they still need its address.
    address = pod.address if state is not SlotState.GONE else ""
    return PublishedSlot(name, configuration, state, budget, pod.uid, pod.name, address)
