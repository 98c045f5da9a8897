"""Adopted Deployments: the user's objects, patched in place, and only in the fields that kvplan owns.

Inputs: the fleet, one configuration, what the plan wants of it, the Deployment as it is, the autoscalers. Output: a
``TargetSet`` whose manifest holds replicas, the engine's command line and kvplan's labels, for server-side apply.
Refused: a Deployment that is missing, that two configurations or fleets share, whose pods ask for other GPUs than the
configuration has, or whose rolling update would wait for a GPU that nobody frees. Replicas that an autoscaler owns are
left alone. Placement is up to the scheduler here, and losslessness to preStop and --shutdown-timeout. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kvplan_operator.act import config_file
from kvplan_operator.act.arguments import CommandLine, with_flags
from kvplan_operator.act.engine_sets import SetKind, TargetSet
from kvplan_operator.act.engine_settings import OWNED_FLAGS, engine_settings
from kvplan_operator.act.pod_template import engine_container, write_mode_flags
from kvplan_operator.act.refusals import refused
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_engine import Configuration
from kvplan_operator.api.fleet_enums import WriteMode
from kvplan_operator.api.labels import ENGINE_CONFIG_ANNOTATION, PLAN_LABEL
from kvplan_operator.api.routing_plan import Group
from kvplan_operator.model.pods import Object, name_of, part, requested_gpus


def adopted_target(
    fleet: ServingFleet,
    configuration: Configuration,
    group: Group | None,
    deployment: Object | None,
    *,
    plan_name: str,
    autoscalers: Iterable[Object],
    seen_version: str | None = None,
    adopted_by: str | None = None,
) -> TargetSet:
    """What a plan wants of an adopted Deployment.

    Args:
        fleet: the fleet.
        configuration: names the Deployment.
        group: as planned; None runs no group.
        deployment: as it is.
        plan_name: for the label.
        autoscalers: of the namespace.
        seen_version: of vLLM, as its engines say.
        adopted_by: another fleet that comes first and adopts it too.

    Raises:
        RolloutRefused: see above.
    """
    name = str(configuration.deployment)
    subject = f"Deployment {fleet.metadata.namespace}/{name}"
    _check_alone(fleet, name, subject, adopted_by)
    if deployment is None:
        raise refused(
            ConditionReason.ADOPTION_REFUSED,
            f"{subject}: configuration {configuration.name} adopts it, and it does not exist: create it or leave "
            "deployment out",
        )
    _check_gpus(fleet, configuration, deployment, subject)
    external = autoscaled(name, autoscalers)
    engine, pod_fields, file = _engine(fleet, group, deployment, subject, seen_version)
    _check_strategy(deployment, engine, subject)
    replicas = group.replicas if group is not None else 0
    spec: dict[str, Any] = {} if external else {"replicas": replicas}
    if engine:
        spec["template"] = pod_fields
    manifest = {
        "apiVersion": "apps/v1",
        "kind": SetKind.DEPLOYMENT.value,
        "metadata": {"name": name, "namespace": fleet.metadata.namespace, "labels": {PLAN_LABEL: plan_name}},
        "spec": spec,
    }
    gpus = configuration.tensor_parallel * configuration.pipeline_parallel
    return TargetSet(
        SetKind.DEPLOYMENT, name, configuration.name, (), gpus, replicas, manifest, file,
        adopted=True, replicas_external=external,
    )  # fmt: skip


def needs_patch(target: TargetSet, deployment: Object) -> bool:
    """Whether the pods of an adopted Deployment are started with anything else than wanted."""
    wanted = part(part(target.manifest, "spec"), "template")
    return bool(wanted) and not _contains(part(part(deployment, "spec"), "template"), wanted)


def autoscaled(name: str, autoscalers: Iterable[Object]) -> bool:
    """Whether a HorizontalPodAutoscaler (KEDA makes one too) owns the replicas of a Deployment."""
    targets = [part(part(scaler, "spec"), "scaleTargetRef") for scaler in autoscalers]
    return any(target.get("kind") == "Deployment" and target.get("name") == name for target in targets)


def _check_alone(fleet: ServingFleet, name: str, subject: str, adopted_by: str | None) -> None:
    if adopted_by is not None:
        raise refused(
            ConditionReason.ADOPTION_REFUSED,
            f"{subject}: fleet {adopted_by} adopts it, and of several fleets the first by name has it: name another "
            "Deployment here",
        )
    users = Counter(k.deployment for k in fleet.spec.configurations)
    if users[name] > 1:
        names = ", ".join(k.name for k in fleet.spec.configurations if k.deployment == name)
        raise refused(
            ConditionReason.ADOPTION_REFUSED,
            f"{subject}: configurations {names} share it: a Deployment has one set of flags, so give each its own",
        )


def _check_gpus(fleet: ServingFleet, configuration: Configuration, deployment: Object, subject: str) -> None:
    wanted = configuration.tensor_parallel * configuration.pipeline_parallel
    asked = requested_gpus(part(part(deployment, "spec"), "template"), fleet.spec.nodes.gpu_resource)
    if asked != wanted:
        raise refused(
            ConditionReason.ADOPTION_REFUSED,
            f"{subject}: its pods ask for {asked} {fleet.spec.nodes.gpu_resource}, and configuration "
            f"{configuration.name} takes {wanted}: make the two agree",
        )


def _check_strategy(deployment: Object, engine: Object, subject: str) -> None:
    """One pod must go before the next comes, or the new one waits for GPUs that the old ones keep."""
    strategy = part(part(deployment, "spec"), "strategy")
    rolling = part(strategy, "rollingUpdate")
    one_by_one = (strategy.get("type"), rolling.get("maxSurge"), rolling.get("maxUnavailable"))
    if engine and one_by_one != ("RollingUpdate", 0, 1):
        raise refused(
            ConditionReason.ROLLOUT_WOULD_DEADLOCK,
            f"{subject}: spec.strategy is {strategy.get('type', 'RollingUpdate')} with maxSurge "
            f"{rolling.get('maxSurge')!r} and maxUnavailable {rolling.get('maxUnavailable')!r}: set maxSurge 0 and "
            "maxUnavailable 1",
        )


def _engine(
    fleet: ServingFleet, group: Group | None, deployment: Object, subject: str, seen_version: str | None
) -> tuple[dict[str, Any], dict[str, Any], Object | None]:
    """The container's fields that change, the pod template around them, and the file of flags.

    All are empty where the engines already start as wanted, or none is to run.
    """
    template = part(part(deployment, "spec"), "template")
    container = engine_container(template, fleet, subject)
    if group is None or not group.replicas:
        return {}, {}, None
    flags = engine_settings(fleet, group, str(container.get("image") or ""), seen_version).flags
    in_file = fleet.spec.engine.write_mode is WriteMode.CONFIG_FILE
    file = config_file.config_map(fleet, flags) if in_file else None
    fields = _pod_fields(fleet, container, flags, file, subject)
    changed = {} if _contains(template, fields) else fields["spec"]["containers"][0]
    return changed, fields, file


def _pod_fields(
    fleet: ServingFleet, container: Object, flags: Mapping[str, str], file: Object | None, subject: str
) -> dict[str, Any]:
    line = CommandLine(tuple(container.get("command") or ()), tuple(container.get("args") or ()))
    owned = OWNED_FLAGS | set(flags) | ({config_file.CONFIG_FLAG} if file is not None else set())
    written = with_flags(line, write_mode_flags(fleet, flags), owned, f"{subject}: container {container.get('name')}")
    engine: dict[str, Any] = {"name": container.get("name"), "args": list(written.args)}
    if written.command != line.command:
        engine["command"] = list(written.command)
    if file is None:
        return {"spec": {"containers": [engine]}}
    engine["volumeMounts"] = [config_file.volume_mount()]
    name = name_of(file)
    return {
        "metadata": {"annotations": {ENGINE_CONFIG_ANNOTATION: name}},
        "spec": {"containers": [engine], "volumes": [config_file.volume(name)]},
    }


def _contains(whole: Any, wanted: Any) -> bool:
    """Whether every field of ``wanted`` stands in ``whole``; entries of lists of objects are found by name."""
    if isinstance(wanted, Mapping):
        return isinstance(whole, Mapping) and all(_contains(whole.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], Mapping):
        by_name = {item.get("name"): item for item in whole or ()}
        return all(_contains(by_name.get(item.get("name")), item) for item in wanted)
    return bool(whole == wanted)
