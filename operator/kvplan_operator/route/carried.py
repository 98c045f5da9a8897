"""A round of routing without the plan's worth: pods come and go, and what a plan decides stays as it was published.

Where the plan in force cannot be assessed (a class is new or gone, no node is usable, measured lengths are missing),
its routes, policies and keys are those of the index in force. Slots and shares follow pods and routers all the same:
requests must not go to a pod that is gone. So do the classes' rules: a new one is counted, or there would never be a
rate to plan it from. Inputs and output as in ``cycle``. Pure.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kvplan_operator.api.fleet_enums import Affinity, RoutingMode
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.index_head import class_rules
from kvplan_operator.route.acknowledge import acknowledgement, hashes_weakly, router_processes, starting
from kvplan_operator.route.capacities import within_capacities
from kvplan_operator.route.conditions import table_fresh
from kvplan_operator.route.cycle import TableDecision, next_generation
from kvplan_operator.route.engine_pods import engine_pods
from kvplan_operator.route.homes import slots_of_homes
from kvplan_operator.route.index import PROMPT, destinations, published_reservations, selected_classes, unplanned_policy
from kvplan_operator.route.keys import KeyDecision, KeyStep
from kvplan_operator.route.publication import Notes, next_publication
from kvplan_operator.route.published import Published
from kvplan_operator.route.share_round import share_round
from kvplan_operator.route.slots import next_slots, planned_groups

Document = Mapping[str, Any]


def can_be_carried(snapshot: Snapshot, before: Published) -> bool:
    """Whether an index is in force that says what a plan decides; without one the next index only measures."""
    planned = snapshot.fleet.spec.routing.mode is RoutingMode.PLAN
    return planned and before.document is not None and before.document["mode"] == "plan"


def carried_table(
    snapshot: Snapshot,
    plan: RoutingPlan,
    draining: Collection[str],
    before: Published,
    *,
    unlisted: Collection[str] = (),
) -> TableDecision:
    """The index in force on the pods and routers of now.

    Args:
        snapshot: everything known.
        plan: in force; its groups and budgets need no assessment.
        draining: slots that a rollout empties.
        before: what the cluster has, see ``can_be_carried``.
        unlisted: uids of pods that a rollout ends before they could serve.

    Raises:
        InvalidInput: the index is larger than a ConfigMap.
    """
    routers, held = router_processes(snapshot), before.document or {}
    named = frozenset[str]() if before.table is None else slots_of_homes(before.table.homes)
    pods = engine_pods(snapshot.cluster.pods, snapshot.fleet)
    assigned = next_slots(before.slots, pods, planned_groups(plan), draining, named, unlisted)
    slots = within_capacities(assigned, before, plan, snapshot.measured.engines)
    generation = next_generation(before, routers)
    shares = share_round(before, routers, slots, published_reservations(held), generation)
    document = {
        **held,
        "generation": generation,
        "classes": _classes(snapshot, held),
        **destinations(slots, shares),
    }
    notes = Notes(before.affinity, shares.held, snapshot.now)
    publication = next_publication(snapshot.fleet.metadata.name, document, _keys(snapshot), before, notes)
    in_force = before.generation if publication is None else publication.generation
    known = acknowledgement(routers, (before.epoch, in_force))
    published = held if publication is None else publication.document
    return TableDecision(
        publication=publication,
        document=published,
        acknowledgement=known,
        starting=starting(routers, published["routers"]),
        conditions=(table_fresh(known, None, hashes_weakly(routers, snapshot.fleet)),),
    )


def _classes(snapshot: Snapshot, held: Document) -> list[dict[str, Any]]:
    """Rules of now with policies of before; a class that is new has none of its own."""
    before = {entry["name"]: entry for entry in held["classes"]}
    found = []
    for request_class, rules in class_rules(selected_classes(snapshot), snapshot.fleet):
        unplanned = unplanned_policy(request_class, snapshot)
        known = before.get(request_class.metadata.name, unplanned)
        found.append(rules | {part: known[part] for part in (*unplanned, PROMPT) if part in known})
    return found


def _keys(snapshot: Snapshot) -> KeyDecision | None:
    """The keys in force stay, unless the spec wants none."""
    return None if snapshot.fleet.spec.routing.affinity is Affinity.OFF else KeyDecision(KeyStep.HOLD)
