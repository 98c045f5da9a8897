"""Tables and readiness from a real API server: watches, shards, re-created objects, a server that goes away."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientSession
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration, CoreV1Api

from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest
from e2e.harness.process import Command
from e2e.harness.readiness import answers
from e2e.router.tables import SECRET, WrittenTable
from kvplan_router.destinations.pods import ready_pods
from kvplan_router.source.cluster import ClusterSource
from kvplan_router.source.keeper import TableKeeper
from kvplan_solver.cacheroute.keys import fingerprint, weak_secret
from kvplan_solver.cacheroute.router_state import read_state
from kvplan_solver.cacheroute.table import EncodedTable

pytestmark = pytest.mark.e2e

PLAIN = WrittenTable(["10.0.0.1:8000"], homes={f"key {n}": [0] for n in range(50)})
SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "minimal" / "fleet.yaml"


@asynccontextmanager
async def api(cluster: Cluster) -> AsyncIterator[CoreV1Api]:
    configuration = Configuration()
    await config.load_kube_config(str(cluster.kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
    async with ApiClient(configuration) as client:
        yield CoreV1Api(client)


def index_map(encoded: EncodedTable, fleet_uid: str = "") -> Manifest:
    """The index; an owner must exist, or the garbage collector takes the index away."""
    owner = {"apiVersion": "kvplan.dev/v1alpha1", "kind": "ServingFleet", "name": "fleet", "uid": fleet_uid}
    metadata = {"name": "fleet-table", "ownerReferences": [owner] if fleet_uid else []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"index.json": encoded.index}}


def fleet_uid(cluster: Cluster, namespace: str) -> str:
    """The uid of a new fleet."""
    fleet = yaml.safe_load(SAMPLE.read_text())
    fleet["metadata"] = {"name": "fleet", "namespace": namespace}
    cluster.kubectl.apply(fleet)
    uid: str = cluster.kubectl.get("servingfleet", "fleet", f"--namespace={namespace}")["metadata"]["uid"]
    return uid


def shard_maps(encoded: EncodedTable) -> list[Manifest]:
    return [
        {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": shard.name},
            "binaryData": {"shard.bin": base64.b64encode(shard.data).decode()},
        }
        for shard in encoded.shards
    ]  # fmt: skip


def publish(cluster: Cluster, namespace: str, table: WrittenTable, fleet_uid: str = "") -> None:
    encoded = table.encoded()
    apply(cluster, namespace, *shard_maps(encoded), index_map(encoded, fleet_uid))


def apply(cluster: Cluster, namespace: str, *documents: Manifest) -> None:
    options = [f"--namespace={namespace}", "--server-side", "--force-conflicts"]
    cluster.kubectl.apply(*documents, options=options)


@asynccontextmanager
async def keeper(cluster: Cluster, namespace: str) -> AsyncIterator[TableKeeper]:
    async with api(cluster) as client:
        source = ClusterSource(client, namespace, "fleet")
        follows = TableKeeper(source, lambda *_: None, fingerprint(SECRET))
        task = asyncio.create_task(follows.run())
        yield follows
        task.cancel()


async def reaches(follows: TableKeeper, order: tuple[int, int], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while follows.order != order:
            await asyncio.sleep(0.02)


async def test_a_table_is_in_force_within_two_seconds_of_the_write(cluster: Cluster, namespace: str) -> None:
    async with keeper(cluster, namespace) as follows:
        await asyncio.to_thread(publish, cluster, namespace, PLAIN)
        await reaches(follows, (1, 1))
        sharded = replace(PLAIN, generation=2, inline_keys_max=0)
        await asyncio.to_thread(publish, cluster, namespace, sharded)
        await reaches(follows, (1, 2), seconds=2.0)
    assert not follows.refusals


async def test_a_recreated_index_is_followed(cluster: Cluster, namespace: str) -> None:
    async with keeper(cluster, namespace) as follows:
        await asyncio.to_thread(publish, cluster, namespace, replace(PLAIN, generation=9))
        await reaches(follows, (1, 9))
        await asyncio.to_thread(cluster.kubectl, "delete", "configmap/fleet-table", f"--namespace={namespace}")
        await asyncio.to_thread(publish, cluster, namespace, replace(PLAIN, epoch=2))
        await reaches(follows, (2, 1))


async def test_an_index_without_its_shards_leaves_the_table_in_force(cluster: Cluster, namespace: str) -> None:
    async with keeper(cluster, namespace) as follows:
        await asyncio.to_thread(publish, cluster, namespace, PLAIN)
        await reaches(follows, (1, 1))
        alone = index_map(replace(PLAIN, generation=2, inline_keys_max=0).encoded())
        await asyncio.to_thread(apply, cluster, namespace, alone)
        async with asyncio.timeout(15):
            while not follows.refusals:
                await asyncio.sleep(0.05)
    assert (dict(follows.refusals), follows.order) == ({"ShardMissing": 1}, (1, 1))


@pytest.mark.usefixtures("own_control_plane")
async def test_an_api_server_that_goes_away_leaves_the_table_in_force_and_is_followed_again(
    cluster: Cluster, namespace: str
) -> None:
    async with keeper(cluster, namespace) as follows:
        await asyncio.to_thread(publish, cluster, namespace, PLAIN)
        await reaches(follows, (1, 1))
        plane = cluster.plane
        await asyncio.to_thread(plane.api_server.kill)
        await asyncio.sleep(1)
        assert follows.order == (1, 1)
        await asyncio.to_thread(plane.api_server.start)
        await asyncio.to_thread(plane.wait_for_api_server)
        await asyncio.to_thread(publish, cluster, namespace, replace(PLAIN, generation=2))
        await reaches(follows, (1, 2), seconds=30.0)


async def test_a_router_without_a_secret_serves_what_the_cluster_says_and_ends_well(
    cluster: Cluster, namespace: str
) -> None:
    listen, admin = cluster.ports.take(), cluster.ports.take()
    uid = await asyncio.to_thread(fleet_uid, cluster, namespace)
    await asyncio.to_thread(publish, cluster, namespace, replace(PLAIN, secret=weak_secret(uid)), uid)
    options = {
        "fleet": f"{namespace}/fleet", "kubeconfig": str(cluster.kubeconfig), "readiness": "pods", "insecure": "yes",
        "listen": f"127.0.0.1:{listen}", "health": "", "admin": f"127.0.0.1:{admin}", "lame-duck-seconds": "0",
    }  # fmt: skip
    argv = [sys.executable, "-m", "kvplan_router", *(f"--{name}={value}" for name, value in options.items())]
    ready = f"http://127.0.0.1:{admin}/readyz"
    router = await asyncio.to_thread(cluster.run, Command("router", argv), lambda: answers(ready))
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{admin}/state") as response:
        state = read_state(await response.read())
    assert (state.epoch, state.generation, state.mode) == (1, 1, "plan")
    assert state.fingerprint == fingerprint(weak_secret(uid))
    await asyncio.to_thread(router.stop)
    assert "draining" in router.log.read_text()
    assert "Traceback" not in router.log.read_text()


async def test_the_fleets_uid_is_that_of_the_indexs_owner(cluster: Cluster, namespace: str) -> None:
    async with api(cluster) as client:
        waiting = asyncio.create_task(ClusterSource(client, namespace, "fleet").fleet_uid())
        uid = await asyncio.to_thread(fleet_uid, cluster, namespace)
        await asyncio.to_thread(publish, cluster, namespace, PLAIN, uid)
        assert await waiting == uid


async def test_ready_pods_are_followed(cluster: Cluster, namespace: str) -> None:
    container = {"name": "c", "image": "registry.example/c:1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    async with api(cluster) as client:
        ready = ready_pods(client, namespace)
        assert await anext(ready) == frozenset()
        await asyncio.to_thread(apply, cluster, namespace, pod)
        seen = await anext(ready)
        found = await asyncio.to_thread(cluster.kubectl.get, "pod", "p", f"--namespace={namespace}")
        assert seen == {found["metadata"]["uid"]}
        await asyncio.to_thread(cluster.kubectl, "delete", "pod/p", f"--namespace={namespace}", "--wait=false")
        assert await anext(ready) == frozenset()
