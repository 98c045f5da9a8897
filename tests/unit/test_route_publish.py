"""The table as it is written: nobody else's object is touched, and what the new index names stays."""

import asyncio
from typing import Any, cast

from kvplan_operator.kube.client import Client
from kvplan_operator.kube.resources import CONFIG_MAPS, Resource
from kvplan_operator.route.publish import collect, collectable
from kvplan_operator.route.published import Published, published
from tests.looks import Lab
from tests.routing import Shelf, a_fleet, engine, router_pod, snapshot, state

OLD = Published("uid", "1", 7, shards={"demo-table-a": 0.0}, shard_uids={"demo-table-a": "uid-a"})


def test_a_shard_that_the_index_just_written_names_again_stays() -> None:
    assert collectable(OLD, 1e9) == ("demo-table-a",)
    assert collectable(OLD, 1e9, {"shards": [{"name": "demo-table-a"}]}) == ()


def test_a_shard_is_deleted_as_it_was_seen() -> None:
    asked: list[tuple[str, str, str, str]] = []

    class Deleting:
        async def delete(self, resource: Resource, namespace: str, name: str, *, uid: str) -> None:
            asked.append((resource.plural, namespace, name, uid))

    assert asyncio.run(collect(cast(Client, Deleting()), a_fleet(), OLD, 1e9)) == ("demo-table-a",)
    assert asked == [("configmaps", "default", "demo-table-a", "uid-a")]


def test_a_config_map_of_somebody_else_under_the_name_of_the_index_is_told_of() -> None:
    async def scenario() -> None:
        lab = Lab()
        lab.store.put(CONFIG_MAPS, {"metadata": {"name": "demo-table"}, "data": {"menu": "soup"}})
        await lab.look(3)
        assert lab.condition("TableFresh") == ("False", "TableNameTaken")

    asyncio.run(scenario())


def test_an_index_that_lost_its_label_is_still_the_fleets() -> None:
    table = Shelf()
    table.found()
    (index,) = cast(list[dict[str, Any]], list(table.objects.values()))
    del index["metadata"]["labels"]
    assert published(table.objects, "demo") is not None
    del index["metadata"]["ownerReferences"]
    assert published(table.objects, "demo") is None


def test_an_index_that_was_put_back_is_followed_by_a_later_one_than_routers_have() -> None:
    table = Shelf()
    table.round(snapshot([engine("one")]))
    epoch, generation = table.found().order
    ahead = {"router-0": state("router-0", (epoch, generation + 5))}
    table.round(snapshot([engine("two"), router_pod("router-0")], routers=ahead))
    assert table.found().order == (epoch, generation + 6)
