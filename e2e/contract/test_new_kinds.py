"""A kind that was just created or changed is not served at once; the client waits as it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from e2e.contract.client import JSON_PATCH, Client, Object, Reply

pytestmark = pytest.mark.e2e

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "contract.kvplan.dev"
DESCRIPTION = "/spec/versions/0/schema/openAPIV3Schema/description"


def kind(plural: str) -> Object:
    """The smallest CRD."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": plural[:-1], "kind": plural.capitalize()[:-1]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


@asynccontextmanager
async def created(client: Client, plural: str) -> AsyncIterator[str]:
    """Create a kind for a block; yield the path of its objects."""
    crd = kind(plural)
    assert (await client.create(CRDS, crd)).code == 201
    yield f"/apis/{GROUP}/v1/{plural}"
    await client.delete(f"{CRDS}/{crd['metadata']['name']}")


async def replies_until(client: Client, path: str, code: int) -> list[Reply]:
    """List again and again until the code is answered; what was said on the way, and that."""
    replies = [await client.get(path)]
    while replies[-1].code != code:
        replies.append(await client.get(path))
    return replies


def is_not_yet(reply: Reply) -> bool:
    """Whether a reply says that the kind is not served yet: not known, or known and being prepared."""
    unknown = (reply.code, reply.message) == (404, "404 page not found\n")
    preparing = (reply.code, reply.reason, reply.headers.get("Retry-After")) == (429, "TooManyRequests", "1")
    return unknown or (preparing and reply.message == "storage is (re)initializing")


async def test_a_new_kind_is_unknown_or_being_prepared_until_it_is_served(client: Client) -> None:
    async with created(client, "novelties") as path:
        *before, _ = await replies_until(client, path, 200)
    assert [reply for reply in before if not is_not_yet(reply)] == []


async def told_to_wait(client: Client, plural: str) -> Reply:
    """Change the schema and list, again and again, until a list falls into the moment of preparation."""
    for number in count():
        change = [{"op": "add", "path": DESCRIPTION, "value": f"change {number}"}]
        assert (await client.patch(f"{CRDS}/{plural}.{GROUP}", change, JSON_PATCH)).code == 200
        replies = [await client.get(f"/apis/{GROUP}/v1/{plural}") for _ in range(5)]
        refused = [reply for reply in replies if reply.code != 200]
        if refused:
            return refused[0]
    raise AssertionError("unreachable: the test's deadline ends the search")


async def test_a_changed_kind_is_prepared_again_and_says_when_to_come_back(client: Client) -> None:
    async with created(client, "changelings") as path:
        await replies_until(client, path, 200)
        told = await told_to_wait(client, "changelings")
        *between, _ = await replies_until(client, path, 200)
    assert told.code == 429
    assert all(is_not_yet(reply) for reply in [told, *between])


async def test_a_kind_remembers_nothing_from_before_it_was_served(client: Client) -> None:
    async with created(client, "forgetters") as path:
        await replies_until(client, path, 200)
        async with client.watch(path, resourceVersion="1") as watch:
            event = await watch.next()
            assert event is not None
            assert (watch.code, event.type, await watch.next()) == (200, "ERROR", None)
    assert (event.object["code"], event.object["reason"]) == (410, "Expired")
    assert event.object["message"].startswith("too old resource version: 1 (")
