"""One round of routing: from what is known to the next index, or to leaving it as it is.

Inputs: the snapshot, the plan in force or none, what a rollout takes away, the table in the cluster. Output: a frozen
``TableDecision``: what to write, the document then in force, conditions, and what was decided on. The steps are
numbered in ``next_table``. Equal content makes no new generation: nothing is written at rest. Pure.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kvplan_operator.api.fleet_enums import RoutingMode
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.index_head import TableVersion
from kvplan_operator.plan.planned import Planned
from kvplan_operator.route.acknowledge import (
    Acknowledgement,
    RouterProcess,
    acknowledgement,
    common_fingerprint,
    hashes_weakly,
    router_processes,
    starting,
    weak_fingerprint,
)
from kvplan_operator.route.affinity import AffinityDecision, decide_affinity
from kvplan_operator.route.capacities import within_capacities
from kvplan_operator.route.conditions import ConditionValue, affinity_enabled, routing_off, table_fresh
from kvplan_operator.route.engine_pods import EnginePod, engine_pods
from kvplan_operator.route.homes import slots_of_homes
from kvplan_operator.route.index import Head, largest_reservations, observe_document, plan_document
from kvplan_operator.route.keys import KeyDecision, KeyStep, decide_keys
from kvplan_operator.route.publication import Notes, Publication, next_publication
from kvplan_operator.route.published import Published
from kvplan_operator.route.share_round import share_round
from kvplan_operator.route.slots import PublishedSlot, next_slots, planned_groups

Document = Mapping[str, Any]
LARGEST_LEAD: Final = 1_000_000
"""Generations by which a router may be ahead of the index in the cluster: ten days of one every second."""


@dataclass(frozen=True, eq=False)
class TableDecision:
    """What a round decided.

    Attributes:
        publication: what to write; None leaves the index as it is.
        withdraw: delete the index: routers then answer without an override.
        document: the index in force once this is done; None where there is none.
        acknowledgement: which routers have it; None where there is none.
        starting: routers that it does not name yet.
        keys: what happens to the keys; None where they were not looked at.
        affinity: what the gate says; None where routing is off.
        conditions: TableFresh and AffinityEnabled.
        notes: what a reader must know, a sentence each.
    """

    publication: Publication | None = None
    withdraw: bool = False
    document: Document | None = None
    acknowledgement: Acknowledgement | None = None
    starting: tuple[str, ...] = ()
    keys: KeyDecision | None = None
    affinity: AffinityDecision | None = None
    conditions: tuple[ConditionValue, ...] = ()
    notes: tuple[str, ...] = ()


def next_table(
    snapshot: Snapshot,
    planned: Planned | None,
    draining: Collection[str],
    before: Published,
    *,
    unlisted: Collection[str] = (),
    recent: KeyDecision | None = None,
) -> TableDecision:
    """The next index.

    Args:
        snapshot: everything known.
        planned: the plan in force, assessed on today's problem; None before one was accepted.
        draining: slots that a rollout empties.
        before: what the cluster has; an index object without content where nothing was published yet.
        unlisted: uids of pods that a rollout ends before they could serve.
        recent: what was decided and written for the keys within this table interval; it stands unless one of their
            slots changed. None plans the keys anew.

    Raises:
        InvalidInput: the index is larger than a ConfigMap.
    """
    if snapshot.fleet.spec.routing.mode is RoutingMode.OFF:
        return TableDecision(withdraw=True, conditions=routing_off())
    in_force = planned if snapshot.fleet.spec.routing.mode is RoutingMode.PLAN else None
    return _Round(snapshot, in_force, before).decided(draining, unlisted, recent)


class _Round:
    """The values that the steps share."""

    def __init__(self, snapshot: Snapshot, planned: Planned | None, before: Published) -> None:
        self.snapshot, self.planned, self.before = snapshot, planned, before
        self.routers = router_processes(snapshot)
        known = before.document["hash"]["fingerprint"] if before.document else ""
        self.fingerprint = common_fingerprint(self.routers, known) or weak_fingerprint(snapshot.fleet)
        self.version = TableVersion(before.epoch, next_generation(before, self.routers))

    def decided(
        self, draining: Collection[str], unlisted: Collection[str], recent: KeyDecision | None
    ) -> TableDecision:
        """All steps in order."""
        # 1 Destinations: which pod is which slot.
        pods = engine_pods(self.snapshot.cluster.pods, self.snapshot.fleet)
        plan = self.planned.plan if self.planned else None
        groups = planned_groups(plan) if plan else {}
        assigned = next_slots(self.before.slots, pods, groups, draining, self._named_slots(), unlisted)
        slots = within_capacities(assigned, self.before, plan, self.snapshot.measured.engines)
        # 2 Whether keys have a fixed home at all.
        affinity = decide_affinity(self.snapshot, self.planned, self.before.affinity)
        # 3 Which keys: install, hold or none.
        keys = None
        if self.planned is not None and affinity.on:
            again = recent is None or self.before.table is None or self._key_slots_changed(slots)
            keys = self._decide_keys(self.planned, slots, pods) if again else _held(recent)
        # 4 The index, and whether it says anything new.
        publication = self._publication(slots, affinity, keys)
        # 5 Who has it.
        generation = publication.generation if publication else self.before.generation
        known = acknowledgement(self.routers, (self.before.epoch, generation))
        document = publication.document if publication else self.before.document
        return TableDecision(
            publication=publication,
            document=document,
            acknowledgement=known,
            starting=starting(self.routers, document["routers"] if document else ()),
            keys=keys,
            affinity=affinity,
            conditions=(
                table_fresh(known, keys, hashes_weakly(self.routers, self.snapshot.fleet)),
                affinity_enabled(affinity, keys, observing=self._observing()),
            ),
            notes=self._notes(keys),
        )

    def _decide_keys(
        self, planned: Planned, slots: tuple[PublishedSlot, ...], pods: tuple[EnginePod, ...]
    ) -> KeyDecision:
        return decide_keys(self.snapshot, planned, slots, pods, self.before, self.fingerprint)

    def _named_slots(self) -> frozenset[str]:
        """Slots that the keys in force name."""
        table = self.before.table
        return slots_of_homes(table.homes) if table is not None else frozenset()

    def _key_slots_changed(self, slots: tuple[PublishedSlot, ...]) -> bool:
        """Whether a slot that holds keys is in another state than the index in force says."""
        named, states = self._named_slots(), {slot.name: slot.state for slot in slots}
        return any(states.get(slot.name) is not slot.state for slot in self.before.slots if slot.name in named)

    def _publication(
        self, slots: tuple[PublishedSlot, ...], affinity: AffinityDecision, keys: KeyDecision | None
    ) -> Publication | None:
        reservations = largest_reservations(self.planned)
        shares = share_round(self.before, self.routers, slots, reservations, self.version.generation)
        head = Head(self.version, self.fingerprint, slots, shares, self.before.document)
        document = (
            observe_document(self.snapshot, head)
            if self.planned is None
            else plan_document(self.snapshot, self.planned, head)
        )
        notes = Notes(affinity.state, shares.held, self.snapshot.now)
        return next_publication(self.snapshot.fleet.metadata.name, document, keys, self.before, notes)

    def _observing(self) -> bool:
        return self.snapshot.fleet.spec.routing.mode is RoutingMode.OBSERVE

    def _notes(self, keys: KeyDecision | None) -> tuple[str, ...]:
        altered = (f"the index was altered and is written again: {self.before.fault}",) if self.before.fault else ()
        return (*altered, *(keys.notes if keys else ()))


def _held(recent: KeyDecision | None) -> KeyDecision | None:
    """The same decision once more: what was installed is in force by now."""
    if recent is None or recent.step is not KeyStep.INSTALL:
        return recent
    return replace(recent, step=KeyStep.HOLD, plan=None)


def next_generation(before: Published, routers: tuple[RouterProcess, ...]) -> int:
    """Later than everything of this epoch that was published, and than what routers have where an index was put back.

    A report that is further ahead than any index could be is made up: following it would use the numbers up.
    """
    said = [router.state.generation for router in routers if router.state and router.state.epoch == before.epoch]
    believed = [generation for generation in said if generation - before.generation <= LARGEST_LEAD]
    return max(before.generation, *believed, 0) + 1
