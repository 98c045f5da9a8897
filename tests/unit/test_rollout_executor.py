"""Commands are checked again right before they are written."""

import asyncio
import copy
from collections.abc import Mapping
from typing import Any, cast

import pytest

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
from kvplan_operator.act.engine_sets import SetKind, TargetSet
from kvplan_operator.act.executor import Executor, Overtaken
from kvplan_operator.act.ledger import Ledger
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import AlreadyExists, Conflict

SET = ObjectRef("Deployment", "d", "uid-d", "7")
POD = ObjectRef("Pod", "p", "uid-p", "")


class Server:
    """The part of the API server that the executor talks to; remembers what was written."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {
            "d": {
                "metadata": {"name": "d", "namespace": "default", "uid": "uid-d", "resourceVersion": "7"},
                "spec": {"replicas": 2},
            },
            "p": {"metadata": {"name": "p", "namespace": "default", "uid": "uid-p", "resourceVersion": "9"}},
        }
        self.written: list[tuple[str, Any]] = []
        self.conflicts = False

    async def find(self, _resource: object, _namespace: str, name: str) -> dict[str, Any] | None:
        return copy.deepcopy(self.objects.get(name))

    async def create(self, _resource: object, document: Mapping[str, Any]) -> None:
        if document["metadata"]["name"] in self.objects:
            raise AlreadyExists("it is there")
        self.written.append(("create", document))

    async def merge_patch(self, _resource: object, document: Mapping[str, Any]) -> None:
        if self.conflicts:
            raise Conflict("the object has been modified")
        self.written.append(("merge", document))

    async def apply(self, _resource: object, document: Mapping[str, Any], *, force: bool) -> None:
        self.written.append(("apply by force" if force else "apply", document))

    async def delete(self, _resource: object, _namespace: str, name: str, **conditions: str) -> None:
        self.written.append(("delete", {"name": name, **conditions}))


def run(server: Server, *commands: Command, free: int = 8) -> tuple[str, ...]:
    executor = Executor(cast(Client, server), "default", lambda: Ledger({"a": free}, {}, {}))
    return asyncio.run(executor.run(commands))


def target(name: str = "new", **changes: Any) -> TargetSet:
    manifest = {"metadata": {"name": name, "namespace": "default", "labels": {}}, "spec": {"replicas": 3}}
    return TargetSet(SetKind.DEPLOYMENT, name, "tp2", ("a",), 2, 3, manifest, **changes)


def test_a_set_is_created_with_the_groups_that_the_step_asks_for() -> None:
    server = Server()
    assert run(server, CreateSet(target(), 1)) == ("create Deployment new on a with 1",)
    ((verb, document),) = server.written
    assert (verb, document["spec"]) == ("create", {"replicas": 1})


def test_a_scale_is_bound_to_the_state_that_was_seen() -> None:
    server = Server()
    run(server, ScaleSet(SET, 2, 1, "plan-1", notes={"seen": "now"}))
    ((_, document),) = server.written
    assert document == {
        "metadata": {
            "name": "d", "namespace": "default", "uid": "uid-d", "resourceVersion": "7",
            "labels": {"kvplan.dev/plan": "plan-1"}, "annotations": {"seen": "now"},
        },
        "spec": {"replicas": 1},
    }  # fmt: skip


def test_notes_are_taken_over_by_the_set_that_was_seen() -> None:
    server = Server()
    assert run(server, KeepNotes(SET, {"seen": "now"})) == ("keep notes on Deployment d",)
    ((verb, document),) = server.written
    metadata = document["metadata"]
    assert (verb, metadata["annotations"], metadata["resourceVersion"]) == ("merge", {"seen": "now"}, "7")


def test_a_drain_marks_the_pod_that_is_to_go_and_its_end_unmarks_it() -> None:
    server = Server()
    run(server, StartDrain(POD, 1234), StopDrain(POD))
    first, second = (document["metadata"] for _, document in server.written)
    assert first["annotations"] == {
        "kvplan.dev/draining-since": "1234",
        "controller.kubernetes.io/pod-deletion-cost": "-2147483648",
    }
    assert set(second["annotations"].values()) == {None}
    assert first["resourceVersion"] == "9"


def test_flags_and_replicas_of_an_adopted_deployment_do_not_move_together() -> None:
    server = Server()
    run(server, PatchAdopted(SET, target("d", adopted=True)))
    ((verb, document),) = server.written
    assert verb == "apply by force"
    assert document["spec"]["replicas"] == 2
    assert document["metadata"]["resourceVersion"] == "7"


def test_files_and_empty_sets_go_by_identity() -> None:
    server = Server()
    server.objects["d"]["spec"]["replicas"] = 0
    run(server, DeleteSet(SET), DeleteConfig(ObjectRef("ConfigMap", "c", "uid-c", "1")))
    assert server.written[0][1]["resource_version"] == "7"
    assert [document["uid"] for _, document in server.written] == ["uid-d", "uid-c"]


def test_a_file_that_is_there_is_the_same_file() -> None:
    server = Server()
    run(server, CreateConfig({"metadata": {"name": "d"}}))
    assert server.written == []


OVERTAKEN: dict[str, tuple[Command, dict[str, Any], int, str]] = {
    "the set for the notes changed": (KeepNotes(SET, {}), {"resourceVersion": "8"}, 8, "d: it changed since"),
    "the object changed": (ScaleSet(SET, 2, 1, "p"), {"resourceVersion": "8"}, 8, "d: it changed since"),
    "the object is another one": (ScaleSet(SET, 2, 1, "p"), {"uid": "other"}, 8, "d: it is gone"),
    "the pod that was to go is gone": (
        ScaleSet(SET, 2, 1, "p", leaving=ObjectRef("Pod", "q", "u", "")), {}, 8, "Pod q: it is gone",
    ),
    "the replicas are others": (ScaleSet(SET, 3, 2, "p"), {}, 8, "spec.replicas is 2"),
    "the GPUs are taken": (ScaleSet(SET, 2, 3, "p", ("a",), 2), {}, 1, "no longer free"),
    "the GPUs for a new set are taken": (CreateSet(target(), 2), {}, 3, "no longer free"),
    "the new set is there already": (CreateSet(target("d"), 1), {}, 8, "it exists already"),
    "somebody filled the set that was empty": (DeleteSet(SET), {}, 8, "somebody gave it 2 replicas"),
}  # fmt: skip


def test_a_drain_that_has_begun_keeps_its_time() -> None:
    server = Server()
    server.objects["p"]["metadata"]["annotations"] = {"kvplan.dev/draining-since": "1000"}
    with pytest.raises(Overtaken, match="it drains already"):
        run(server, StartDrain(POD, 1234))
    assert server.written == []


def test_a_change_between_the_check_and_the_write_is_the_servers_to_refuse() -> None:
    server = Server()
    server.conflicts = True
    with pytest.raises(Overtaken, match=r"drain p: the object has been modified"):
        run(server, StartDrain(POD, 1234))


def test_a_set_does_not_shrink_while_the_pod_that_was_to_go_goes_by_itself() -> None:
    server = Server()
    server.objects["p"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(Overtaken, match="another pod would go with it"):
        run(server, ScaleSet(SET, 2, 1, "p", leaving=POD))
    assert server.written == []


@pytest.mark.parametrize(("command", "metadata", "free", "words"), OVERTAKEN.values(), ids=OVERTAKEN.keys())
def test_nothing_more_is_written_when(command: Command, metadata: dict[str, Any], free: int, words: str) -> None:
    server = Server()
    server.objects["d"]["metadata"] |= metadata
    with pytest.raises(Overtaken, match=words):
        run(server, command, StartDrain(POD, 1), free=free)
    assert server.written == []
