"""What a plan wants of the cluster: the engine sets of all its groups, adopted and created.

Inputs: a Snapshot and a plan. Output: ``TargetSet`` values by name. Every configuration that adopts a Deployment has
one, with no groups where the plan leaves it out; created sets exist only where the plan places groups. Pure.
"""

from kvplan_operator.act.adopted import adopted_target, autoscaled
from kvplan_operator.act.engine_sets import TargetSet
from kvplan_operator.act.engine_settings import engine_settings
from kvplan_operator.act.manifests import Renderer, base_template
from kvplan_operator.act.observed_sets import observed_sets
from kvplan_operator.act.placement import placements
from kvplan_operator.act.pod_template import engine_container
from kvplan_operator.act.refusals import refused
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet_engine import Configuration
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.pods import Object, name_of
from kvplan_operator.model.snapshot import Snapshot


def target_sets(snapshot: Snapshot, plan: RoutingPlan, inventory: Inventory) -> tuple[TargetSet, ...]:
    """All sets that the plan wants.

    Raises:
        RolloutRefused: the first thing in the way.
    """
    adopted = [_adopted(snapshot, plan, k) for k in snapshot.fleet.spec.configurations if k.deployment]
    return (*adopted, *_created(snapshot, plan, inventory))


def omitted_flags(snapshot: Snapshot, plan: RoutingPlan) -> tuple[str, ...]:
    """Flags that are wanted and left out, because the version of the created engines does not know them."""
    own = [group for group in plan.spec.groups if group.deployment is None]
    if not own:
        return ()
    base, subject = base_template(snapshot.cluster.template, snapshot.fleet)
    image = str(engine_container(base, snapshot.fleet, subject).get("image") or "")
    return tuple(sorted({flag for group in own for flag in engine_settings(snapshot.fleet, group, image).omitted}))


def _created(snapshot: Snapshot, plan: RoutingPlan, inventory: Inventory) -> list[TargetSet]:
    cluster, known = snapshot.cluster, {k.name: k for k in snapshot.fleet.spec.configurations}
    render = Renderer(snapshot.fleet, plan.metadata.name, cluster.template, cluster.worker_sets_served)
    groups = {group.configuration: group for group in plan.spec.groups}
    targets = [
        target
        for name, stages in sorted(placements(plan, known, inventory).items())
        for target in render.sets(groups[name], known[name], stages)
    ]
    for target in targets:
        if autoscaled(target.name, cluster.autoscalers):
            raise refused(
                ConditionReason.REPLICAS_MANAGED_EXTERNALLY,
                f"Deployment {snapshot.fleet.metadata.namespace}/{target.name}: a HorizontalPodAutoscaler scales it, "
                "and kvplan made it for a place that the plan names: delete the autoscaler",
            )
    return targets


def _adopted(snapshot: Snapshot, plan: RoutingPlan, configuration: Configuration) -> TargetSet:
    deployments = {name_of(item): item for item in snapshot.cluster.deployments}
    group = next((g for g in plan.spec.groups if g.configuration == configuration.name), None)
    return adopted_target(
        snapshot.fleet,
        configuration,
        group,
        deployments.get(str(configuration.deployment)),
        plan_name=plan.metadata.name,
        autoscalers=snapshot.cluster.autoscalers,
        seen_version=_seen_version(snapshot, configuration.name),
        adopted_by=snapshot.cluster.adopted_elsewhere.get(str(configuration.deployment)),
    )


def _seen_version(snapshot: Snapshot, configuration: str) -> str | None:
    """What the engines of an adopted Deployment say they are."""
    sets: tuple[Object, ...] = ()
    for seen in observed_sets(snapshot.cluster, snapshot.fleet, None):
        if seen.configuration == configuration and seen.adopted:
            sets += tuple(group.leader for group in seen.groups)
    uids = [str(pod["metadata"].get("uid")) for pod in sets]
    facts = [snapshot.measured.engines[uid].value for uid in uids if uid in snapshot.measured.engines]
    return next((state.version for state in facts if state is not None and state.version), None)
