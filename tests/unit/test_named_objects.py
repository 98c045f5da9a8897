"""Objects read by name: once, until something may have changed."""

import asyncio
from typing import Any, cast

from kvplan_operator.kube.client import Client
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, Resource
from kvplan_operator.reconcile.named_objects import FRESH_SECONDS, NamedObjects


class Counting:
    """A client that counts its reads."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, str, str]] = []

    async def find(self, resource: Resource, namespace: str, name: str) -> Any:
        self.reads.append((resource.plural, namespace, name))
        return None if name == "absent" else {"metadata": {"name": name, "managedFields": [1]}}


def test_an_object_is_read_once_until_its_namespace_is_forgotten_or_it_is_old() -> None:
    client, now = Counting(), [0.0]
    named = NamedObjects(cast(Client, client), lambda: now[0])

    async def reads() -> list[int]:
        counts = []
        for forget, after in (("", 0.0), ("", FRESH_SECONDS), ("other", 0.0), ("team", 0.0), ("", FRESH_SECONDS + 1)):
            now[0] += after
            named.forget(forget)
            found = await named.get(DEPLOYMENTS, "team", "engines")
            assert found == {"metadata": {"name": "engines"}}
            counts.append(len(client.reads))
        return counts

    assert asyncio.run(reads()) == [1, 1, 1, 2, 3]


def test_an_absent_object_is_remembered_as_absent_and_kinds_do_not_mix() -> None:
    client = Counting()
    named = NamedObjects(cast(Client, client), lambda: 0.0)

    async def look() -> None:
        for resource in (DEPLOYMENTS, DEPLOYMENTS, CONFIG_MAPS):
            assert await named.get(resource, "team", "absent") is None

    asyncio.run(look())
    assert client.reads == [("deployments", "team", "absent"), ("configmaps", "team", "absent")]
