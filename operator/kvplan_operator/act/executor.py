"""Commands carried out: each is checked against the cluster as it is now, then written.

Inputs: commands of a step, a client, a look at the ledger as the watches have it now. Output: what was done, in words;
an error of the client ends the step, and the next look decides anew. Checked right before each write: the object is the
one that was seen (uid) in the state that was seen (resourceVersion, which the write carries), and GPUs for a new group
are still free. Must not decide anything: a check that fails stops, it does not choose another way.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kvplan_operator.act.commands import (
    Command,
    CreateConfig,
    CreateSet,
    DeleteConfig,
    DeleteSet,
    KeepNotes,
    ObjectRef,
    PatchAdopted,
    ScaleSet,
    StartDrain,
    StopDrain,
)
from kvplan_operator.act.engine_sets import Footprint, SetKind, footprint
from kvplan_operator.act.ledger import Ledger
from kvplan_operator.api.labels import DELETION_COST_ANNOTATION, DRAINING_ANNOTATION, PLAN_LABEL
from kvplan_operator.errors import OperatorError
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import AlreadyExists, Conflict, Gone, NotFound
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, LEADER_WORKER_SETS, PODS, Resource
from kvplan_operator.model.pods import Object, is_terminating, part

_RESOURCES: Mapping[str, Resource] = {
    SetKind.DEPLOYMENT: DEPLOYMENTS,
    SetKind.WORKER_SET: LEADER_WORKER_SETS,
    "Pod": PODS,
    "ConfigMap": CONFIG_MAPS,
}
_FIRST_TO_GO = "-2147483648"
"""The least deletion cost there is."""


class Overtaken(OperatorError):
    """The cluster is no longer as it was when the command was decided; the next look decides anew."""


class Executor:
    """Carries out the commands of one fleet.

    Args:
        client: fenced, so that a process that lost its lease writes nothing.
        namespace: of the fleet.
        current: the ledger as the watches have it at the moment of the call.
    """

    def __init__(self, client: Client, namespace: str, current: Callable[[], Ledger]) -> None:
        self._client, self._namespace, self._current = client, namespace, current

    async def run(self, commands: Iterable[Command]) -> tuple[str, ...]:
        """Carry out commands in order.

        Returns:
            What was done, a line per command.

        Raises:
            Overtaken: the cluster changed; later commands are left out.
            KubeError: the API server refused, or did not answer.
        """
        done = []
        for command in commands:
            try:
                await self._run(command)
            except (Conflict, Gone, NotFound) as error:
                raise Overtaken(f"{command}: {error}") from error
            done.append(str(command))
        return tuple(done)

    async def _run(self, command: Command) -> None:
        match command:
            case CreateConfig():
                await self._create(CONFIG_MAPS, command.manifest)
            case CreateSet():
                await self._create_set(command)
            case ScaleSet():
                await self._scale(command)
            case StartDrain():
                await self._start_drain(command)
            case StopDrain():
                await self._stop_drain(command)
            case PatchAdopted():
                await self._patch(command)
            case KeepNotes():
                seen = await self._as_seen(command.on)
                fields = {"metadata": {"annotations": dict(command.notes)}}
                await self._client.merge_patch(_RESOURCES[command.on.kind], self._at(seen, fields))
            case DeleteSet():
                await self._delete_set(command.on)
            case DeleteConfig():
                await self._client.delete(CONFIG_MAPS, self._namespace, command.on.name, uid=command.on.uid)

    async def _create(self, resource: Resource, manifest: Object) -> None:
        """Create an object whose name stands for its content: one that is there already is the same."""
        try:
            await self._client.create(resource, manifest)
        except AlreadyExists:
            return

    async def _create_set(self, command: CreateSet) -> None:
        self._check_room(command.target.footprint, command.replicas, str(command))
        manifest = dict(command.target.manifest)
        manifest["spec"] = dict(part(manifest, "spec")) | {"replicas": command.replicas}
        try:
            await self._client.create(_RESOURCES[command.target.kind], manifest)
        except AlreadyExists:
            raise Overtaken(f"{command}: it exists already") from None

    async def _scale(self, command: ScaleSet) -> None:
        seen = await self._as_seen(command.on)
        if int(part(seen, "spec").get("replicas", 1)) != command.before:
            raise Overtaken(f"{command}: spec.replicas is {part(seen, 'spec').get('replicas')}")
        if command.nodes:
            growth = command.replicas - command.before
            self._check_room(footprint(command.nodes, command.gpus_per_pod), growth, str(command))
        if command.leaving is not None and is_terminating(await self._read(command.leaving)):
            raise Overtaken(f"{command}: {command.leaving.name} goes already, and another pod would go with it")
        metadata = {"labels": {PLAN_LABEL: command.plan_name}, "annotations": dict(command.notes)}
        fields = {"metadata": metadata, "spec": {"replicas": command.replicas}}
        await self._client.merge_patch(_RESOURCES[command.on.kind], self._at(seen, fields))

    async def _start_drain(self, command: StartDrain) -> None:
        """A drain that has begun keeps its time: pods are watched without their version, and a look may be late."""
        seen = await self._read(command.pod)
        if DRAINING_ANNOTATION in part(part(seen, "metadata"), "annotations"):
            raise Overtaken(f"{command}: it drains already")
        cost = {DRAINING_ANNOTATION: str(command.since), DELETION_COST_ANNOTATION: _FIRST_TO_GO}
        await self._client.merge_patch(PODS, self._at(seen, {"metadata": {"annotations": cost}}))

    async def _stop_drain(self, command: StopDrain) -> None:
        seen = await self._read(command.pod)
        cost = dict.fromkeys((DRAINING_ANNOTATION, DELETION_COST_ANNOTATION))
        await self._client.merge_patch(PODS, self._at(seen, {"metadata": {"annotations": cost}}))

    async def _patch(self, command: PatchAdopted) -> None:
        """Take the command line from whoever owns it; the plan was accepted to change it."""
        seen = await self._as_seen(command.on)
        document = dict(command.target.manifest)
        document["metadata"] = dict(part(document, "metadata")) | {
            "uid": command.on.uid,
            "resourceVersion": part(seen, "metadata")["resourceVersion"],
        }
        if "replicas" in part(document, "spec"):  # flags and replicas move one after the other
            document["spec"] = dict(part(document, "spec")) | {"replicas": part(seen, "spec").get("replicas", 1)}
        await self._client.apply(DEPLOYMENTS, document, force=True)

    async def _delete_set(self, on: ObjectRef) -> None:
        seen = await self._as_seen(on)
        if part(seen, "spec").get("replicas", 1):
            raise Overtaken(f"{on.kind} {on.name}: somebody gave it {part(seen, 'spec').get('replicas')} replicas")
        version = str(part(seen, "metadata")["resourceVersion"])
        await self._client.delete(
            _RESOURCES[on.kind], self._namespace, on.name,
            uid=on.uid, resource_version=version, propagation="Background",
        )  # fmt: skip

    async def _as_seen(self, on: ObjectRef) -> Object:
        """The object, if it is still in the state that was seen."""
        seen = await self._read(on)
        version = part(seen, "metadata").get("resourceVersion")
        if version != on.resource_version:
            raise Overtaken(f"{on.kind} {on.name}: it changed since it was looked at")
        return seen

    async def _read(self, on: ObjectRef) -> Object:
        seen = await self._client.find(_RESOURCES[on.kind], self._namespace, on.name)
        if seen is None or part(seen, "metadata").get("uid") != on.uid:
            raise Overtaken(f"{on.kind} {on.name}: it is gone")
        return seen

    def _check_room(self, wanted: Footprint, groups: int, what: str) -> None:
        missing = self._current().missing({node: gpus * groups for node, gpus in wanted.items()})
        if missing:
            raise Overtaken(f"{what}: {missing} GPUs are no longer free")

    def _at(self, seen: Object, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of an object, bound to the state in which it was read."""
        metadata = part(seen, "metadata")
        bound = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
        kind = {name: seen[name] for name in ("apiVersion", "kind") if name in seen}
        return kind | dict(fields) | {"metadata": dict(part(fields, "metadata")) | bound}
