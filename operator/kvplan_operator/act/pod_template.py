"""The pod template of an engine that kvplan creates: the user's template with what the plan and a lossless end need.

Inputs: the pod template that ``engine.templateRef`` names, flags, GPUs, nodes. Output: a new template; the user's is
not touched. Kept: everything the user wrote, annotations for Prometheus and probes included. Added or set: flags, GPU
requests, node affinity, the fleet's tolerations, labels; and, where absent, /dev/shm, probes and preStop. The grace
period is more than preStop + --shutdown-timeout + 15 s (06-vllm §5). Pure.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvplan_operator.act import config_file
from kvplan_operator.act.arguments import CommandLine, with_flags
from kvplan_operator.act.engine_settings import OWNED_FLAGS
from kvplan_operator.act.refusals import refused
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import WriteMode
from kvplan_operator.model.pods import TEMPLATE_HASH_LABEL, Object, part, parts, requested_gpus

PRE_STOP_SECONDS = 15
"""Time for every router to learn that the pod goes; a table is seen within 2 s."""
ASSUMED_PRE_STOP_SECONDS = 60
"""How long a preStop hook of the user's may take where that cannot be read off it."""
TEARDOWN_SECONDS = 16
"""More than the 15 s an engine needs to end after its last request."""
PORT = 8000
STARTUP = {"periodSeconds": 10, "failureThreshold": 120}
"""Twenty minutes to load the weights of a large model."""
_SHM = {"name": "kvplan-shm", "emptyDir": {"medium": "Memory"}}


def engine_container(template: Object, fleet: ServingFleet, subject: str) -> Object:
    """The container that runs vLLM.

    Raises:
        RolloutRefused: the template has none of that name.
    """
    wanted = fleet.spec.engine.container
    containers = parts(part(template, "spec"), "containers")
    for container in containers:
        if container.get("name") == wanted:
            return container
    names = ", ".join(str(container.get("name")) for container in containers) or "none"
    raise refused(
        ConditionReason.TEMPLATE_REFUSED,
        f"{subject}: spec.containers has {names}: name one of them in spec.engine.container (now {wanted})",
    )


def engine_template(
    base: Object,
    fleet: ServingFleet,
    flags: Mapping[str, str],
    *,
    gpus: int,
    nodes: Sequence[str],
    labels: Mapping[str, str],
    config_map: str | None,
    subject: str,
) -> dict[str, Any]:
    """The pod template of one set of groups.

    Args:
        base: the user's pod template.
        fleet: names container, GPU resource, tolerations.
        flags: value by name.
        gpus: of one pod.
        nodes: where its pods may run.
        labels: kvplan's own.
        config_map: holds the flags in write mode ConfigFile.
        subject: the user's template, for messages.

    Raises:
        RolloutRefused: a template that no engine can be made of.
    """
    template = copy.deepcopy({"metadata": dict(part(base, "metadata")), "spec": dict(part(base, "spec"))})
    engine = engine_container(template, fleet, subject)
    assert isinstance(engine, dict)  # noqa: S101  # a copy made of dicts
    template["metadata"] = _metadata(template["metadata"], labels, config_map)
    engine.update(_command(engine, fleet, flags, config_map, subject))
    engine["resources"] = _resources(engine, fleet.spec.nodes.gpu_resource, gpus)
    _check_gpus(template, fleet.spec.nodes.gpu_resource, gpus, subject)
    _serve_and_end_well(template["spec"], engine, flags)
    _place(template["spec"], fleet, nodes)
    if config_map is not None:
        _add_named(template["spec"], "volumes", config_file.volume(config_map))
        _add_named(engine, "volumeMounts", config_file.volume_mount())
    return template


def write_mode_flags(fleet: ServingFleet, flags: Mapping[str, str]) -> Mapping[str, str]:
    """What stands on the command line: the flags, or the file that holds them."""
    return {config_file.CONFIG_FLAG: config_file.PATH} if _in_file(fleet) else flags


def _in_file(fleet: ServingFleet) -> bool:
    return fleet.spec.engine.write_mode is WriteMode.CONFIG_FILE


def _metadata(metadata: Object, labels: Mapping[str, str], config_map: str | None) -> dict[str, Any]:
    kept = {name: value for name, value in part(metadata, "labels").items() if name != TEMPLATE_HASH_LABEL}
    annotations = dict(part(metadata, "annotations"))
    if config_map is not None:
        annotations[config_file.ANNOTATION] = config_map
    return {"labels": kept | dict(labels)} | ({"annotations": annotations} if annotations else {})


def _command(
    engine: Object, fleet: ServingFleet, flags: Mapping[str, str], config_map: str | None, subject: str
) -> dict[str, Any]:
    line = CommandLine(tuple(engine.get("command") or ()), tuple(engine.get("args") or ()))
    owned = OWNED_FLAGS | set(flags) | ({config_file.CONFIG_FLAG} if config_map is not None else set())
    written = with_flags(line, write_mode_flags(fleet, flags), owned, f"{subject}: container {engine.get('name')}")
    return {name: list(words) for name, words in (("command", written.command), ("args", written.args)) if words}


def _resources(engine: Object, resource: str, gpus: int) -> dict[str, Any]:
    resources = copy.deepcopy(dict(part(engine, "resources")))
    for kind in ("requests", "limits"):
        resources[kind] = dict(part(resources, kind)) | {resource: str(gpus)}
    return resources


def _check_gpus(template: Object, resource: str, gpus: int, subject: str) -> None:
    """The pod holds what the plan counts for it, and no container beside the engine asks for more."""
    held = requested_gpus(template, resource)
    if held != gpus:
        raise refused(
            ConditionReason.TEMPLATE_REFUSED,
            f"{subject}: its pods would hold {held} {resource}, and the plan gives {gpus} to the engine: take "
            f"{resource} out of the requests and limits of all other containers, init containers included",
        )


def _serve_and_end_well(spec: dict[str, Any], engine: dict[str, Any], flags: Mapping[str, str]) -> None:
    """Probes, shared memory for the ranks, and an end that loses no request."""
    probe = {"httpGet": {"path": "/health", "port": _port(engine)}}
    engine.setdefault("startupProbe", probe | STARTUP)
    engine.setdefault("readinessProbe", probe | {"periodSeconds": 5})
    lifecycle = engine.setdefault("lifecycle", {})
    hook = lifecycle.setdefault("preStop", {"exec": {"command": ["sleep", str(PRE_STOP_SECONDS)]}})
    needed = _hook_seconds(hook) + int(flags.get("shutdown-timeout", "0")) + TEARDOWN_SECONDS
    spec["terminationGracePeriodSeconds"] = max(needed, spec.get("terminationGracePeriodSeconds") or 0)
    if not any(mount.get("mountPath") == "/dev/shm" for mount in parts(engine, "volumeMounts")):  # noqa: S108
        _add_named(spec, "volumes", _SHM)
        _add_named(engine, "volumeMounts", {"name": _SHM["name"], "mountPath": "/dev/shm"})  # noqa: S108


def _port(engine: Object) -> int | str:
    """By name where the user named one, so that their number may change."""
    for port in parts(engine, "ports"):
        return str(port["name"]) if port.get("name") else int(port["containerPort"])
    return PORT


def _hook_seconds(hook: Object) -> int:
    if "sleep" in hook:
        return int(part(hook, "sleep").get("seconds") or 0)
    words = list(part(hook, "exec").get("command") or ())
    if len(words) == 2 and words[0].endswith("sleep") and words[1].isdecimal():
        return int(words[1])
    return ASSUMED_PRE_STOP_SECONDS


def _place(spec: dict[str, Any], fleet: ServingFleet, nodes: Iterable[str]) -> None:
    """On these nodes and nowhere else; the user's other affinities stay."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in nodes]
    affinity = dict(part(spec, "affinity"))
    node_affinity = dict(part(affinity, "nodeAffinity"))
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    spec["affinity"] = affinity | {"nodeAffinity": node_affinity}
    tolerations = list(spec.get("tolerations") or ())
    wanted = [toleration.to_wire() for toleration in fleet.spec.nodes.tolerations]
    spec["tolerations"] = tolerations + [toleration for toleration in wanted if toleration not in tolerations]
    for name in ("nodeName", "nodeSelector"):  # the fleet's node selector and the plan take their place
        spec.pop(name, None)


def _add_named(holder: dict[str, Any], field: str, entry: Mapping[str, Any]) -> None:
    others = [item for item in holder.get(field) or () if item.get("name") != entry["name"]]
    holder[field] = [*others, dict(entry)]
