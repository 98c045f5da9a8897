"""Whether the engines of a fleet know the flags that they are started with, and that plans give them.

Inputs: the fleet, its engine Deployments, the versions that pods say. Outputs: findings. An unknown flag ends an engine
at start, again and again. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence

from kvplan_cli.cluster.containers import command_line, flag_values
from kvplan_cli.cluster.reading import FleetView
from kvplan_cli.doctor.findings import Finding, Level, Unknown
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.pods import Object, name_of, part, parts
from kvplan_operator.plan.engine_capabilities import release, unknown_flags, version_of_image

CHECK = "engine"


def engine_checks(
    view: FleetView, engines: Sequence[Object], versions: Mapping[str, str | Unknown]
) -> Iterator[Finding]:
    """One line per Deployment, and one per plan that asks for what the engines do not know."""
    stated = view.fleet.spec.engine.version
    known: set[str] = set()
    for deployment in engines:
        version = _version(deployment, versions.get(name_of(deployment)), view.fleet.spec.engine.container) or stated
        known |= {version} if version else set()
        yield _deployment(deployment, version, stated, view.fleet.spec.engine.container)
    for plan in _pursued(view):
        for version in sorted(known or ({stated} if stated else set())):
            yield from _plan(plan, version)


def _version(deployment: Object, said: str | Unknown | None, container: str) -> str | None:
    """What a pod says, else what the image's tag states."""
    if isinstance(said, str):
        return said
    found = _container(deployment, container)
    return version_of_image(str(found.get("image", ""))) if found is not None else None


def _deployment(deployment: Object, version: str | None, stated: str | None, container: str) -> Finding:
    name, found = f"Deployment {name_of(deployment)}", _container(deployment, container)
    if found is None:
        remedy = "name the container that runs vLLM in spec.engine.container"
        return Finding(Level.FAIL, CHECK, name, f"it has no container {container!r}", remedy)
    unknown = unknown_flags(version, flag_values(command_line(found).words))
    if unknown:
        what = f"vLLM {version} does not know --{', --'.join(unknown)}"
        return Finding(Level.FAIL, CHECK, name, what, "remove the flag or use a newer image")
    if version is None:
        remedy = "state spec.engine.version: a version that nobody states is taken to be current"
        return Finding(Level.WARN, CHECK, name, "its vLLM version is unknown", remedy)
    if stated is not None and release(stated) != release(version):
        what = f"it runs vLLM {version}, the fleet states {stated}"
        return Finding(Level.WARN, CHECK, name, what, "correct spec.engine.version, or leave it out")
    return Finding(Level.OK, CHECK, name, f"vLLM {version} knows all its flags")


def _pursued(view: FleetView) -> Iterator[RoutingPlan]:
    """The plan in force, the one that is accepted and the one that waits."""
    shelf = view.shelf
    for digest in dict.fromkeys((shelf.current, shelf.accepted, shelf.candidate)):
        if digest is not None and digest in shelf.plans:
            yield shelf.plans[digest]


def _plan(plan: RoutingPlan, version: str) -> Iterator[Finding]:
    flags = {flag.name for group in plan.spec.groups for flag in group.engine_flags}
    unknown = unknown_flags(version, flags)
    if unknown:
        what = f"vLLM {version} does not know its --{', --'.join(unknown)}"
        remedy = "state that version in spec.engine.version: the next plan leaves the flag out"
        yield Finding(Level.WARN, CHECK, f"RoutingPlan {plan.metadata.name}", what, remedy)


def _container(deployment: Object, name: str) -> Object | None:
    template = part(part(deployment, "spec"), "template")
    containers = parts(part(template, "spec"), "containers")
    return next((container for container in containers if container.get("name") == name), None)
