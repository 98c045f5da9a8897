"""A table of 130,000 keys on a real API server: written whole or not at all, read back, repaired, collected."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import Conflict, KubeError
from kvplan_operator.kube.resources import CONFIG_MAPS, SERVING_FLEETS
from kvplan_operator.model.snapshot import ClusterView, KeyMeasured, Measured, Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.route.cycle import TableDecision, next_table
from kvplan_operator.route.objects import shard_object
from kvplan_operator.route.publish import GRACE_SECONDS, collect, ensure_index, publish, read_published, withdraw
from kvplan_operator.route.published import INDEX_KEY, Published
from kvplan_solver.cacheroute.table import RefusalReason, TableRefused, read_index, read_table
from tests.planning import demo, request_class
from tests.routing import a_fleet, hashed, running, said

pytestmark = pytest.mark.e2e

KEYS = 130_000
ROUTING = {"affinity": "On", "warmSlotsPerDestination": 100_000}


async def applied_fleet(client: Client, namespace: str) -> ServingFleet:
    """The fleet as an object: ConfigMaps whose owner does not exist are deleted."""
    document = a_fleet(routing=ROUTING).to_wire()
    document["metadata"] = {"name": "demo", "namespace": namespace}
    document.pop("status", None)
    return ServingFleet.model_validate(await client.create(SERVING_FLEETS, document))


def planned_for(fleet: ServingFleet) -> Planned:
    return replace(demo(), problem=replace(demo().problem, fleet=fleet))


def keys(count: int, hot: int = 0) -> tuple[KeyMeasured, ...]:
    """Many slow keys, and some hot ones with hashes of their own."""
    slow = (KeyMeasured("chat", hashed(n), 2.0 / count, 0.0) for n in range(count))
    return (*slow, *(KeyMeasured("chat", hashed(KEYS + hot * 1_000 + n), 0.02, 0.0) for n in range(50 * bool(hot))))


def look(fleet: ServingFleet, now: float, measured: Sequence[KeyMeasured]) -> Snapshot:
    namespace = fleet.metadata.namespace
    pods = [pod | {"metadata": pod["metadata"] | {"namespace": namespace}} for pod in running()]
    classes = tuple(request_class(name) for name in ("chat", "code"))
    moved = tuple(
        c.model_copy(update={"metadata": c.metadata.model_copy(update={"namespace": namespace})}) for c in classes
    )
    view = ClusterView(pods=tuple(pods))
    return Snapshot(now, fleet, "1", moved, (), view, Measured(keys=said(tuple(measured))))


async def found(client: Client, fleet: ServingFleet) -> Published:
    there = await read_published(client, fleet)
    assert there is not None
    return there


async def decided(
    client: Client, fleet: ServingFleet, now: float, measured: Sequence[KeyMeasured]
) -> tuple[TableDecision, Published]:
    before = await read_published(client, fleet) or await ensure_index(client, fleet)
    return next_table(look(fleet, now, measured), planned_for(fleet), frozenset(), before), before


async def round_trip(client: Client, fleet: ServingFleet, now: float, measured: Sequence[KeyMeasured]) -> TableDecision:
    decision, before = await decided(client, fleet, now, measured)
    if decision.publication is not None:
        await publish(client, fleet, decision.publication, before)
    return decision


async def test_a_large_table_is_read_back_and_an_unchanged_one_writes_nothing(client: Client, namespace: str) -> None:
    fleet = await applied_fleet(client, namespace)
    measured = keys(KEYS)
    decision = await round_trip(client, fleet, 1e9, measured)
    assert decision.publication is not None
    there = await found(client, fleet)
    table = there.table
    assert table is not None
    assert len(table) == KEYS
    assert table.epoch == there.epoch > 1_700_000_000
    assert table.lookup(hashed(7)) is not None
    item = await client.get(CONFIG_MAPS, namespace, "demo-table")
    assert read_index(item["data"][INDEX_KEY]).order == there.order
    assert item["metadata"]["ownerReferences"][0]["uid"] == fleet.metadata.uid
    again = await round_trip(client, fleet, 1e9 + 30, measured)
    assert again.publication is None
    assert (await client.get(CONFIG_MAPS, namespace, "demo-table"))["metadata"][
        "resourceVersion"
    ] == there.resource_version


async def test_a_crash_between_shards_and_index_leaves_the_old_table_and_the_next_round_finishes(
    client: Client, namespace: str
) -> None:
    fleet = await applied_fleet(client, namespace)
    await round_trip(client, fleet, 1e9, keys(6_000))
    old = await found(client, fleet)
    decision, _ = await decided(client, fleet, 1e9 + 60, keys(6_000, hot=1))
    assert decision.publication is not None
    for shard in decision.publication.shards:
        await client.create(CONFIG_MAPS, shard_object(fleet, shard))
    half = await found(client, fleet)
    assert half.order == old.order
    assert half.table is not None
    assert len(half.table) == 6_000
    await round_trip(client, fleet, 1e9 + 90, keys(6_000, hot=1))
    new = await found(client, fleet)
    assert new.order > old.order
    assert new.table is not None
    assert new.table.lookup(hashed(KEYS + 1_000)) is not None


async def test_shards_are_collected_after_the_grace_time_and_not_before(client: Client, namespace: str) -> None:
    fleet = await applied_fleet(client, namespace)
    await round_trip(client, fleet, 1e9, keys(6_000))
    old = (await found(client, fleet)).named_shards
    await round_trip(client, fleet, 1e9 + 60, keys(6_000, hot=1))
    assert await collect(client, fleet, await found(client, fleet), 1e9 + 60 + GRACE_SECONDS - 1) == ()
    assert set(await collect(client, fleet, await found(client, fleet), 1e9 + 60 + GRACE_SECONDS)) == old
    left = await found(client, fleet)
    assert set(left.shards) == left.named_shards
    assert left.table is not None


async def test_a_deleted_shard_an_edited_index_and_a_deleted_index_are_written_again(
    client: Client, namespace: str
) -> None:
    fleet = await applied_fleet(client, namespace)
    measured = keys(6_000)
    await round_trip(client, fleet, 1e9, measured)
    first = await found(client, fleet)
    (shard,) = first.named_shards
    await client.delete(CONFIG_MAPS, namespace, shard)
    document = read_index((await client.get(CONFIG_MAPS, namespace, "demo-table"))["data"][INDEX_KEY])
    with pytest.raises(TableRefused) as refusal:
        read_table(document, {})
    assert refusal.value.reason is RefusalReason.SHARD_MISSING
    await round_trip(client, fleet, 1e9 + 60, measured)
    repaired = await found(client, fleet)
    assert repaired.table is not None
    edit: dict[str, Any] = {
        "metadata": {"name": "demo-table", "namespace": namespace},
        "data": {INDEX_KEY: "{}"},
    }
    await client.merge_patch(CONFIG_MAPS, edit, manager="somebody")
    await round_trip(client, fleet, 1e9 + 120, measured)
    restored = await found(client, fleet)
    assert restored.generation > repaired.generation
    assert restored.table is not None
    await client.delete(CONFIG_MAPS, namespace, "demo-table")
    while time.time() < restored.epoch + 1:  # an epoch is a creation time in whole seconds
        await asyncio.sleep(0.05)
    await round_trip(client, fleet, 1e9 + 180, measured)
    assert (await found(client, fleet)).order > restored.order


async def test_of_two_leaders_the_late_one_is_refused_and_nothing_is_lost(client: Client, namespace: str) -> None:
    fleet = await applied_fleet(client, namespace)
    await round_trip(client, fleet, 1e9, keys(6_000))
    late, before = await decided(client, fleet, 1e9 + 60, keys(6_000, hot=1))
    await round_trip(client, fleet, 1e9 + 60, keys(6_000, hot=2))
    newest = await found(client, fleet)
    assert late.publication is not None
    with pytest.raises(Conflict):
        await publish(client, fleet, late.publication, before)
    assert (await found(client, fleet)).order == newest.order


async def test_withdrawing_leaves_nothing(client: Client, namespace: str) -> None:
    fleet = await applied_fleet(client, namespace)
    await round_trip(client, fleet, 1e9, keys(6_000))
    await withdraw(client, fleet, await found(client, fleet))
    assert await read_published(client, fleet) is None
    listing = await client.list(CONFIG_MAPS, namespace, labels="kvplan.dev/fleet=demo")
    assert listing.items == ()


async def test_a_table_for_a_fleet_that_is_gone_is_no_silent_success(client: Client, namespace: str) -> None:
    fleet = await applied_fleet(client, namespace)
    decision, before = await decided(client, fleet, 1e9, keys(6_000))
    await client.delete(CONFIG_MAPS, namespace, "demo-table")
    assert decision.publication is not None
    with pytest.raises(KubeError):
        await publish(client, fleet, decision.publication, before)
