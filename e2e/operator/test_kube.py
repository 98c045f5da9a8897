"""The operator's client, reflector, Lease and events on a real API server, also while that restarts or forgets."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.crds.documents import SMALLEST, named
from e2e.harness.cluster import Cluster
from e2e.harness.process import Command, Process
from kvplan_operator.kube import resources
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import (
    AlreadyExists,
    Conflict,
    FieldConflict,
    Gone,
    LeadershipLost,
    NotFound,
    NotServed,
    Refused,
    Terminating,
)
from kvplan_operator.kube.fence import Fence
from kvplan_operator.kube.lease import Leadership
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.recorder import Recorder
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, LEASES, PODS, SERVING_FLEETS, Resource

pytestmark = pytest.mark.e2e

CONTENDER = Path(__file__).with_name("contender.py")
STALE_UID = "00000000-0000-0000-0000-000000000000"
CORE_EVENTS = Resource("", "v1", "events", "Event")
"""The one kind that the API server reads straight from etcd, with no cache that remembers longer."""


def config_map(namespace: str, name: str, **data: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def fleet(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    document = named(SMALLEST["ServingFleet"], name)
    document["metadata"]["namespace"] = namespace
    document["spec"] |= spec
    return document


def deployment(namespace: str, name: str, replicas: int) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]},
    }
    template["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}  # type: ignore[index]
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


class Copy:
    """A reflector that runs, and a wait for what it should know."""

    def __init__(self, client: Client, resource: Resource, namespace: str, **options: Any) -> None:
        self.changed = asyncio.Event()
        self.reflector: Reflector[Any] = Reflector(
            client, resource, namespace=namespace, on_change=lambda *_: self.changed.set(), **options
        )

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.reflector.objects}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reflector.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_names(self, *names: str) -> None:
        while self.names != set(names):
            self.changed.clear()
            await self.changed.wait()


def test_every_kind_is_served_where_its_resource_says(cluster: Cluster) -> None:
    ours = [each for each in vars(resources).values() if isinstance(each, Resource)]
    wanted = {(each.plural, each.api_version, str(each.namespaced).lower(), each.kind) for each in ours}
    rows = [line.split() for line in cluster.kubectl("api-resources", "--no-headers").splitlines()]
    missing = wanted - {(row[0], *row[-3:]) for row in rows}
    assert {plural for plural, *_ in missing} == {"leaderworkersets"}  # not installed here


async def test_a_kind_that_is_not_installed_is_told_from_an_object_that_is_not_there(
    client: Client, namespace: str
) -> None:
    with pytest.raises(NotServed):
        await client.find(resources.LEADER_WORKER_SETS, namespace, "absent")
    assert await client.find(SERVING_FLEETS, namespace, "absent") is None


async def test_pages_are_read_to_the_end_and_their_items_carry_their_type(client: Client, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await client.create(
            CONFIG_MAPS,
            config_map(namespace, name) | {"metadata": {"namespace": namespace, "name": name, "labels": {"page": "1"}}},
        )
    listing = await client.list(CONFIG_MAPS, namespace, labels="page=1", limit=2)
    assert [(item["kind"], item["metadata"]["name"]) for item in listing.items] == [
        ("ConfigMap", "a"),
        ("ConfigMap", "b"),
        ("ConfigMap", "c"),
    ]


async def test_another_managers_field_is_refused_by_name_until_it_is_forced(client: Client, namespace: str) -> None:
    await client.apply(DEPLOYMENTS, deployment(namespace, "engines", 0), manager="git")
    named_only = {name: deployment(namespace, "engines", 0)[name] for name in ("apiVersion", "kind", "metadata")}
    ours = {**named_only, "spec": {"replicas": 1}}
    with pytest.raises(FieldConflict) as refused:
        await client.apply(DEPLOYMENTS, ours)
    assert [(cause["field"], cause["message"]) for cause in refused.value.causes] == [
        (".spec.replicas", 'conflict with "git"')
    ]
    taken = await client.apply(DEPLOYMENTS, ours, force=True, dry_run=True)
    assert taken["spec"]["replicas"] == 1
    assert (await client.get(DEPLOYMENTS, namespace, "engines"))["spec"]["replicas"] == 0


async def test_late_writes_are_conflicts_and_writes_to_a_successor_are_gone(client: Client, namespace: str) -> None:
    old = await client.create(SERVING_FLEETS, fleet(namespace, "chat"))
    await client.merge_patch(
        SERVING_FLEETS, {"metadata": {"namespace": namespace, "name": "chat"}, "spec": {"suspend": True}}
    )
    version = {"namespace": namespace, "name": "chat", "resourceVersion": old["metadata"]["resourceVersion"]}
    stale = {"namespace": namespace, "name": "chat", "uid": STALE_UID}
    typed = {"apiVersion": old["apiVersion"], "kind": old["kind"]}
    late = [
        client.replace(SERVING_FLEETS, old),
        client.merge_patch(SERVING_FLEETS, {"metadata": version, "spec": {"suspend": False}}),
        client.apply(
            SERVING_FLEETS, {**typed, "metadata": version, "status": {"observedGeneration": 1}}, subresource="status"
        ),
        client.delete(SERVING_FLEETS, namespace, "chat", resource_version=old["metadata"]["resourceVersion"]),
    ]
    for write in late:
        with pytest.raises(Conflict):
            await write
    to_another = [
        client.replace(SERVING_FLEETS, {**old, "metadata": {**old["metadata"], "uid": STALE_UID}}),
        client.merge_patch(SERVING_FLEETS, {"metadata": stale, "spec": {"suspend": False}}),
        client.apply(SERVING_FLEETS, {**typed, "metadata": stale, "spec": {"suspend": False}}, force=True),
        client.delete(SERVING_FLEETS, namespace, "chat", uid=STALE_UID),
    ]
    for write in to_another:
        with pytest.raises(Gone):
            await write


async def test_names_that_are_taken_fields_that_are_unknown_and_objects_that_go_are_told_apart(
    client: Client, namespace: str
) -> None:
    held = config_map(namespace, "held")
    held["metadata"]["finalizers"] = ["kvplan.dev/held"]
    await client.create(CONFIG_MAPS, held)
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, held)
    await client.delete(CONFIG_MAPS, namespace, "held")
    with pytest.raises(Terminating):
        await client.create(CONFIG_MAPS, held)
    await client.merge_patch(CONFIG_MAPS, {"metadata": {"namespace": namespace, "name": "held", "finalizers": None}})
    await client.delete(CONFIG_MAPS, namespace, "held")
    with pytest.raises(Refused, match=r'unknown field "spec\.suspended"'):
        await client.create(SERVING_FLEETS, fleet(namespace, "chat", suspended=True))
    with pytest.raises(NotFound):
        await client.merge_patch(SERVING_FLEETS, {"metadata": {"namespace": namespace, "name": "chat"}, "spec": {}})


async def test_a_full_config_map_is_written_without_a_warning_and_comes_back_through_the_watch(
    client: Client, namespace: str
) -> None:
    copy = Copy(client, CONFIG_MAPS, namespace, fields="metadata.name=shard")
    shard = "A" * 4 * (2**20 // 3)  # in base64
    async with copy.running():
        await copy.reflector.synced.wait()
        await client.create(CONFIG_MAPS, config_map(namespace, "shard") | {"binaryData": {"shard.bin": shard}})
        await copy.until_names("shard")
    assert copy.reflector.objects[namespace, "shard"]["binaryData"]["shard.bin"] == shard


async def test_projected_pods_are_followed_from_their_creation_to_their_end(client: Client, namespace: str) -> None:
    ready = asyncio.Event()

    def look(_key: Any, _old: Any, new: Any) -> None:
        conditions = (new or {}).get("status", {}).get("conditions", [])
        if any((each["type"], each["status"]) == ("Ready", "True") for each in conditions):
            ready.set()

    copy = Copy(client, PODS, namespace, project=project_pod)
    watcher: Reflector[Any] = Reflector(client, PODS, namespace=namespace, project=project_pod, on_change=look)
    task = asyncio.create_task(watcher.run())
    async with copy.running():
        await copy.reflector.synced.wait()
        await client.apply(DEPLOYMENTS, deployment(namespace, "engine", 1))
        await ready.wait()
        (pod,) = watcher.objects.values()
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1"}
        assert (pod["metadata"]["ownerReferences"][0]["kind"], "managedFields" in pod["metadata"]) == (
            "ReplicaSet",
            False,
        )
        await client.delete(DEPLOYMENTS, namespace, "engine", propagation="Foreground")
        await copy.until_names()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("own_control_plane")
async def test_a_copy_is_right_again_after_the_api_server_was_killed(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    copy = Copy(client, SERVING_FLEETS, namespace)
    await client.create(SERVING_FLEETS, fleet(namespace, "stays"))
    await client.create(SERVING_FLEETS, fleet(namespace, "goes"))
    async with copy.running():
        await copy.until_names("stays", "goes")
        cluster.plane.api_server.kill()
        cluster.plane.api_server.start()
        await asyncio.to_thread(cluster.plane.wait_for_api_server)
        await client.delete(SERVING_FLEETS, namespace, "goes")
        await client.create(SERVING_FLEETS, fleet(namespace, "comes"))
        await copy.until_names("stays", "comes")
        assert copy.reflector.failure is None


@pytest.mark.usefixtures("own_control_plane")
async def test_a_copy_whose_version_is_forgotten_is_read_anew_and_loses_what_went_meanwhile(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    def event(name: str) -> dict[str, Any]:
        metadata = {"namespace": namespace, "name": name}
        return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": {"namespace": namespace}}

    copy = Copy(client, CORE_EVENTS, namespace)
    await client.create(CORE_EVENTS, event("goes"))
    async with copy.running():
        await copy.until_names("goes")
    await client.delete(CORE_EVENTS, namespace, "goes")
    newest = await client.create(CORE_EVENTS, event("comes"))
    await compact(cluster, newest["metadata"]["resourceVersion"])
    async with copy.running():
        await copy.until_names("comes")


async def compact(cluster: Cluster, revision: str) -> None:
    """Make etcd forget everything before a revision."""
    (flag,) = (flag for flag in cluster.plane.etcd.command.argv if flag.startswith("--listen-client-urls="))
    body = {"revision": revision, "physical": True}
    url = f"{flag.partition('=')[2]}/v3/kv/compaction"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.usefixtures("own_control_plane")
async def test_a_pods_token_is_read_from_its_file_again_when_it_was_replaced(
    cluster: Cluster, client: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _, port = cluster.plane.server.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    (tmp_path / "ca.crt").write_bytes(cluster.plane.authority.certificate.read_bytes())
    (tmp_path / "token").write_text("not yet a token\n")
    bearer = await Client.connect(account=tmp_path)
    with pytest.raises(Refused, match="Unauthorized"):
        await bearer.list(PODS, namespace)
    token = cluster.kubectl("create", "token", "default", f"--namespace={namespace}")
    (tmp_path / "token").write_text(token)
    with pytest.raises(Refused, match=rf"system:serviceaccount:{namespace}:default.* cannot list resource .pods"):
        await bearer.list(PODS, namespace)
    await bearer.close()


async def test_a_kubeconfig_token_is_loaded_again_once_it_is_refused(
    cluster: Cluster, client: Client, namespace: str, tmp_path: Path
) -> None:
    server, authority = cluster.plane.server, cluster.plane.authority.certificate
    (tmp_path / "token").write_text("expired")
    (tmp_path / "kubeconfig").write_text(
        f"""
apiVersion: v1
kind: Config
current-context: pod
clusters: [{{name: bed, cluster: {{server: "{server}", certificate-authority: "{authority}"}}}}]
users: [{{name: pod, user: {{tokenFile: "{tmp_path}/token"}}}}]
contexts: [{{name: pod, context: {{cluster: bed, user: pod}}}}]
"""
    )
    bearer = await Client.connect(tmp_path / "kubeconfig")
    (tmp_path / "token").write_text(cluster.kubectl("create", "token", "default", f"--namespace={namespace}").strip())
    with pytest.raises(Refused, match=f"system:serviceaccount:{namespace}:default"):
        await bearer.list(PODS, namespace)
    await bearer.close()


async def test_a_dropped_fence_lets_reads_through_and_no_write(client: Client, namespace: str) -> None:
    fence = Fence()
    fence.drop()
    fenced = client.fenced(fence)
    with pytest.raises(LeadershipLost):
        await fenced.create(CONFIG_MAPS, config_map(namespace, "late"))
    assert await fenced.find(CONFIG_MAPS, namespace, "late") is None


async def test_repeated_transitions_are_one_event_with_a_count(client: Client, namespace: str) -> None:
    regarding = await client.create(SERVING_FLEETS, fleet(namespace, "chat"))
    recorder = Recorder(client, "operator-0")
    task = asyncio.create_task(recorder.run())
    for _ in range(2):
        recorder.record(regarding, "AwaitingApproval", "Plan", "plan chat-0123456789ab waits")
    await recorder.flushed()
    (event,) = (await client.list(EVENTS, namespace)).items
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (event["regarding"]["uid"], event["reason"], event["type"]) == (
        regarding["metadata"]["uid"],
        "AwaitingApproval",
        "Normal",
    )
    assert (event["series"]["count"], recorder.dropped) == (2, 0)


def contender(cluster: Cluster, namespace: str, identity: str) -> Process:
    argv = [sys.executable, str(CONTENDER), str(cluster.kubeconfig), namespace, "leader", f"{namespace}/{identity}"]
    return cluster.run(Command(f"contender-{namespace}-{identity}", argv))


class Writers:
    """Who wrote the ConfigMap, version by version, and who holds the Lease."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.order: list[str] = []
        self.count = 0
        self.changed = asyncio.Event()
        self.reflector: Reflector[Any] = Reflector(
            client, CONFIG_MAPS, namespace=namespace, fields="metadata.name=leader", on_change=self._note
        )

    def _note(self, _key: Any, _old: Any, new: Any) -> None:
        self.count += 1
        writer = new["data"]["writer"].rpartition("/")[2] if new else ""
        if writer and (not self.order or self.order[-1] != writer):
            self.order.append(writer)
        self.changed.set()

    async def until_order(self, *writers: str) -> None:
        while self.order != list(writers):
            self.changed.clear()
            await self.changed.wait()

    async def until_more_writes(self, number: int) -> None:
        enough = self.count + number
        while self.count < enough:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def watched_writers(client: Client, namespace: str) -> AsyncIterator[Writers]:
    await client.create(CONFIG_MAPS, config_map(namespace, "leader", writer=""))
    writers = Writers(client, namespace)
    task = asyncio.create_task(writers.reflector.run())
    yield writers
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_leader_that_was_stopped_writes_nothing_once_another_leads(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    async with watched_writers(client, namespace) as writers:
        first = contender(cluster, namespace, "first")
        await writers.until_order("first")
        second = contender(cluster, namespace, "second")
        await writers.until_more_writes(20)
        first.send(signal.SIGSTOP)
        await writers.until_order("first", "second")
        first.send(signal.SIGCONT)
        assert await asyncio.to_thread(first.wait, 20.0)
        await writers.until_more_writes(20)
        assert writers.order == ["first", "second"]
        assert "term 1 of this process is over" in first.log.read_text()
        second.stop()


async def test_a_leader_that_ends_cleanly_hands_over_before_its_lease_would_run_out(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    async with watched_writers(client, namespace) as writers:
        first = contender(cluster, namespace, "first")
        await writers.until_order("first")
        second = Leadership(client, namespace, "leader", f"{namespace}/second", 600.0, 500.0, 1.0)
        task = asyncio.create_task(second.run())
        while second.echo == float("-inf"):
            await writers.until_more_writes(1)
        await asyncio.to_thread(first.stop)
        await second.acquired.wait()  # its own 600 s would outlast the test
        lease = await client.get(LEASES, namespace, "leader")
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == (f"{namespace}/second", 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await second.release()
        assert not (await client.get(LEASES, namespace, "leader"))["spec"].get("holderIdentity")


@pytest.mark.usefixtures("own_control_plane")
async def test_a_leader_outlives_a_short_absence_of_the_api_server(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    leader = Leadership(client, namespace, "leader", "only", 60.0, 50.0, 0.5)
    task = asyncio.create_task(leader.run())
    await leader.acquired.wait()
    cluster.plane.api_server.kill()
    cluster.plane.api_server.start()
    await asyncio.to_thread(cluster.plane.wait_for_api_server)
    back = leader.echo
    changed = Copy(client, LEASES, namespace)
    async with changed.running():
        while leader.echo == back:
            changed.changed.clear()
            await changed.changed.wait()
    assert (leader.fence.holds, leader.fence.term, task.done()) == (True, 1, False)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await leader.release()
