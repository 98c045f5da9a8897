"""From a snapshot to the planner's inputs: what the spec says beats what was measured, which beats nothing.

Input: a ``Snapshot``. Output: ``PlanningInputs``. Lengths that nobody measured since the operator started are those
that the class's status remembers. A stale value is still the best one known; whether it is fresh enough to act on is
the gate's question (``freshness``). Pure.
"""

from collections.abc import Iterator
from dataclasses import replace

from kvplan_operator.api.fleet_engine import Configuration
from kvplan_operator.model.calibration import without
from kvplan_operator.model.facts import ClassFacts, facts_from_config_maps
from kvplan_operator.model.inventory import Inventory, inventory_from_objects
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.problem import PlanningInputs, belongs
from kvplan_operator.model.remembered import remembered_lengths
from kvplan_operator.model.snapshot import Snapshot

CAPACITY_TOLERANCE = 0.1
"""Relative difference between stated and reported KV capacity that is not worth a remark."""


def planning_inputs(snapshot: Snapshot, inventory: Inventory | None = None) -> PlanningInputs:
    """What a problem is built from.

    Args:
        snapshot: one look at the fleet.
        inventory: ``observed_inventory`` of the same; None reads it off the objects.

    Raises:
        InvalidInput: an object of the cluster, or a ConfigMap with lengths, that makes no sense.
    """
    fleet = snapshot.fleet
    return PlanningInputs(
        fleet=fleet,
        classes=tuple(c for c in snapshot.classes if belongs(c, fleet)),
        inventory=inventory or observed_inventory(snapshot),
        facts=_class_facts(snapshot),
        measured=_measurements(snapshot),
        remarks=tuple(_remarks(snapshot)),
    )


def observed_inventory(snapshot: Snapshot) -> Inventory:
    """The GPUs that a plan may use.

    Raises:
        InvalidInput: a Node or Pod that makes no sense.
    """
    cluster = snapshot.cluster
    found = inventory_from_objects(cluster.nodes, cluster.pods, snapshot.fleet)
    return replace(found, groups_may_span=cluster.worker_sets_served)


def _class_facts(snapshot: Snapshot) -> dict[str, ClassFacts]:
    """Measurements by class; lengths from a ConfigMap that a class names come before the routers' histogram."""
    own = [c for c in snapshot.classes if belongs(c, snapshot.fleet)]
    named = facts_from_config_maps(own, list(snapshot.cluster.config_maps.values()))
    facts = {}
    for request_class in own:
        name = request_class.metadata.name
        fact = snapshot.measured.classes.get(name)
        measured = fact.value.facts if fact is not None and fact.value is not None else ClassFacts()
        if request_class.spec.output_lengths.config_map_ref is not None:
            # The ConfigMap is what the class asks for: without it the planner says so, and takes no other lengths.
            measured = replace(measured, output_lengths=None, suggested_radius_tokens=None)
        else:
            measured = measured.completed_by(ClassFacts(output_lengths=remembered_lengths(request_class)))
        facts[name] = named.get(name, ClassFacts()).completed_by(measured)
    return facts


def _measurements(snapshot: Snapshot) -> dict[str, Measurement]:
    """Measurements by configuration, without what the spec states."""
    found = {}
    for configuration in snapshot.fleet.spec.configurations:
        measured = _measured(snapshot, configuration)
        if measured is not None:
            found[configuration.name] = without(
                measured,
                kv_capacity=configuration.kv_capacity_tokens is not None,
                prefill=configuration.prefill_tokens_per_second is not None,
                decode=configuration.decode_microseconds_per_token is not None,
            )
    return found


def _measured(snapshot: Snapshot, configuration: Configuration) -> Measurement | None:
    fact = snapshot.measured.configurations.get(configuration.name)
    return fact.value if fact is not None else None


def _remarks(snapshot: Snapshot) -> Iterator[str]:
    """Capacities that the spec states and the engines contradict."""
    for configuration in snapshot.fleet.spec.configurations:
        stated, measured = configuration.kv_capacity_tokens, _measured(snapshot, configuration)
        seen = measured.kv_capacity_tokens if measured is not None else None
        if stated is not None and seen is not None and abs(seen - stated) > CAPACITY_TOLERANCE * stated:
            yield (
                f"configuration {configuration.name}: its engines report {seen} KV tokens, the spec's "
                f"kvCapacityTokens of {stated} is used"
            )
